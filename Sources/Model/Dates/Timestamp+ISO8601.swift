extension Timestamp {
  /// The moment that an ISO 8601 text with an offset names, in whole seconds; nil where it is none.
  ///
  /// Blanks around it and a fraction of a second are refused.
  public init?(iso8601 text: some StringProtocol) {
    var reading = DateReading()
    guard text.utf8.allSatisfy({ reading.append($0) }), reading.fraction == nil, let seconds = reading.seconds
    else { return nil }
    self.init(seconds: seconds)
  }

  /// The moment in UTC, nanoseconds left out: `2026-11-21T07:53:00Z`.
  ///
  /// Years before 0 and after 9999 carry a sign and at least six digits.
  public var iso8601: String {
    let (days, second) = seconds.flooredQuotient(by: 86_400)
    let day = CalendarDay(daysSinceEpoch: days)
    let date = "\(day.yearText)-\(day.month.padded(to: 2))-\(day.day.padded(to: 2))"
    let clock = [second / 3_600, second / 60 % 60, second % 60].map { $0.padded(to: 2) }
    return "\(date)T\(clock.joined(separator: ":"))Z"
  }
}

extension CalendarDay {
  fileprivate var yearText: String {
    if (0...9_999).contains(year) { return year.padded(to: 4) }
    return (year < 0 ? "-" : "+") + abs(year).padded(to: 6)
  }
}

extension Int64 {
  fileprivate func flooredQuotient(by divisor: Int64) -> (quotient: Int64, remainder: Int64) {
    let (quotient, remainder) = quotientAndRemainder(dividingBy: divisor)
    return remainder < 0 ? (quotient - 1, remainder + divisor) : (quotient, remainder)
  }

  fileprivate func padded(to count: Int) -> String {
    let digits = description
    return String(repeating: "0", count: Swift.max(0, count - digits.count)) + digits
  }
}
