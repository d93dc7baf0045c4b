/// A date of ISO 8601 with an offset from UTC.
///
/// Extended (`2026-11-21T07:53:00+01:00`) and basic form (`20261121T075300Z`); seconds may be left out; the
/// offset is `Z`, `±hh:mm`, `±hhmm` or `±hh`. Years that have not four digits carry a sign and six or more.
/// Seconds may have a fraction, after a point, of at most 30 digits. A leap second and a time without an offset are
/// refused: neither is one moment.
struct DateReading: ContentReading {
  /// Without the fraction and its point.
  private var text: [UInt8] = []
  private var candidates = DateForm.all
  /// The digits of the fraction, and how long the text was before it; nil: there is none.
  private(set) var fraction: (digits: [UInt8], position: Int)?

  mutating func append(_ byte: UInt8) -> Bool {
    if let fraction, fraction.position == text.count, ASCII.isDigit(byte) {
      self.fraction?.digits.append(byte)
      return fraction.digits.count < SettingDate.mostDigits
    }
    if byte == ASCII.point { return beginFraction() }
    guard fraction?.digits.isEmpty != true else { return false }
    text.append(byte)
    candidates = candidates.filter { $0.allows(text) }
    return !candidates.isEmpty
  }

  mutating func finish() -> SettingValue? {
    guard let seconds else { return nil }
    guard let fraction else { return .date(SettingDate(seconds: seconds)) }
    return SettingDate(seconds: seconds, fraction: fraction.digits).map(SettingValue.date)
  }

  /// The whole second since 1970-01-01T00:00:00Z; nil: the text is not complete.
  var seconds: Int64? { candidates.first { $0.pattern.count == text.count }?.seconds(text) }

  private mutating func beginFraction() -> Bool {
    guard fraction == nil else { return false }
    fraction = ([], text.count)
    candidates = candidates.filter { $0.hasSeconds(before: text.count) }
    return !candidates.isEmpty
  }
}

/// One way to write a date: a letter stands for a digit of its field, `±` as `+` for a sign.
private struct DateForm: Sendable {
  let pattern: [UInt8]

  static let all: [DateForm] = {
    let days = ["YYYY-MM-DDT"] + (6...12).map { "+" + String(repeating: "Y", count: $0) + "-MM-DDT" }
    let extended = days.flatMap { day in ["hh:mm:ss", "hh:mm"].map { day + $0 } }
    let basic = ["YYYYMMDDThhmmss", "YYYYMMDDThhmm"]
    return (extended + basic).flatMap { date in
      ["Z", "+HH:NN", "+HHNN", "+HH"].map { DateForm(pattern: Array((date + $0).utf8)) }
    }
  }()

  /// Whether `text`, all but the last byte of which was allowed before, begins like this form.
  func allows(_ text: [UInt8]) -> Bool {
    guard text.count <= pattern.count, let byte = text.last else { return false }
    switch pattern[text.count - 1] {
    case let field where isField(field): return ASCII.isDigit(byte) && mayBeInRange(field, text)
    case ASCII.plus: return byte == ASCII.plus || byte == ASCII.minus
    case let mark: return byte == mark
    }
  }

  /// Whether the seconds end there.
  func hasSeconds(before position: Int) -> Bool {
    pattern.prefix(position).last == UInt8(ascii: "s")
      && !pattern.dropFirst(position).contains(UInt8(ascii: "s"))
  }

  /// The moment that a text of this form names; nil: beyond the range of a date.
  func seconds(_ text: [UInt8]) -> Int64? {
    let day = CalendarDay(year: year(text), month: value("M", text), day: value("D", text)).daysSinceEpoch
    let clock = value("h", text) * 3_600 + value("m", text) * 60 + value("s", text)
    let offset = value("H", text) * 3_600 + value("N", text) * 60
    let isBehind = isOffsetNegative(text)
    return Int64(exactly: Int128(day) * 86_400 + Int128(clock + (isBehind ? offset : -offset)))
  }
}

extension DateForm {
  private func isField(_ letter: UInt8) -> Bool {
    letter != UInt8(ascii: "T") && letter != UInt8(ascii: "Z") && ASCII.lowercased(letter) &- 0x61 < 26
  }

  /// Whether the digits of a field that are there, with any that follow, can be in its range.
  private func mayBeInRange(_ letter: UInt8, _ text: [UInt8]) -> Bool {
    guard let range = range(letter, text) else { return true }
    let isComplete = text.count == pattern.count || pattern[text.count] != letter
    let digits = value(Unicode.Scalar(letter), text)
    return isComplete ? range.contains(digits) : range.overlaps(digits * 10...digits * 10 + 9)
  }

  private func range(_ letter: UInt8, _ text: [UInt8]) -> ClosedRange<Int64>? {
    switch Unicode.Scalar(letter) {
    case "M": 1...12
    case "D": 1...CalendarDay.days(inMonth: value("M", text), of: year(text))
    case "h", "H": 0...23
    case "m", "s", "N": 0...59
    default: nil
    }
  }

  private func value(_ letter: Unicode.Scalar, _ text: [UInt8]) -> Int64 {
    zip(pattern, text).reduce(0) { sum, pair in
      pair.0 == UInt8(ascii: letter) ? sum * 10 + Int64(pair.1 - ASCII.zero) : sum
    }
  }

  private func year(_ text: [UInt8]) -> Int64 {
    text.first == ASCII.minus ? -value("Y", text) : value("Y", text)
  }

  private func isOffsetNegative(_ text: [UInt8]) -> Bool {
    guard let sign = pattern.lastIndex(of: ASCII.plus), sign > 0 else { return false }
    return text[sign] == ASCII.minus
  }
}
