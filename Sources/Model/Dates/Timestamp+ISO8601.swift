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
    // By bytes: each event and each line of the record has a time.
    var bytes: [UInt8] = []
    bytes.reserveCapacity(20)
    func add(_ number: Int64) {
      for digit in [number / 10, number % 10] {
        bytes.append(UInt8(ascii: "0") &+ UInt8(truncatingIfNeeded: digit))
      }
    }
    func add(_ separator: Unicode.Scalar, _ number: Int64) {
      bytes.append(UInt8(ascii: separator))
      add(number)
    }
    if (0...9_999).contains(day.year) {
      add(day.year / 100)
      add(day.year % 100)
    } else {
      bytes += day.longYear.utf8
    }
    add("-", day.month)
    add("-", day.day)
    add("T", second / 3_600)
    add(":", second / 60 % 60)
    add(":", second % 60)
    bytes.append(UInt8(ascii: "Z"))
    return String(decoding: bytes, as: UTF8.self)
  }
}

extension CalendarDay {
  fileprivate var longYear: String {
    (year < 0 ? "-" : "+") + abs(year).padded(to: 6)
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
