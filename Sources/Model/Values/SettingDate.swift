/// A moment as property lists and Foundation's `Date` hold it: a double, in seconds since 2001-01-01T00:00:00Z.
///
/// Within 0.1 ms of that moment, where a double is finer than any text of it, whole nanoseconds.
public struct SettingDate: Hashable, Sendable {
  /// 2001-01-01T00:00:00Z, in seconds since 1970-01-01T00:00:00Z.
  private static let reference: Int128 = 978_307_200
  /// More digits of a fraction than any moment has.
  static let mostDigits = 30

  /// Seconds since 2001-01-01T00:00:00Z.
  public let sinceReference: Double

  /// nil: no number, or too far away for seconds in 64 bits.
  public init?(sinceReference seconds: Double) {
    guard abs(seconds) < 9e18 else { return nil }
    let moment = Self.isClose(seconds) ? (seconds * 1e9).rounded() / 1e9 : seconds
    // There is one zero.
    sinceReference = moment + 0.0
  }

  /// A whole second since 1970-01-01T00:00:00Z; beyond 2⁵³ the nearest one that a double holds.
  public init(seconds: Int64) {
    sinceReference = Double(Int128(seconds) - Self.reference)
  }

  /// A second since 1970-01-01T00:00:00Z and the decimal digits behind it; nil: more than 30, or no digits.
  public init?(seconds: Int64, fraction digits: some Collection<UInt8>) {
    guard (1...Self.mostDigits).contains(digits.count), digits.allSatisfy(ASCII.isDigit) else { return nil }
    let (whole, digits) = (Int128(seconds) - Self.reference, Self.significant(digits))
    guard !digits.isEmpty else {
      self.init(seconds: seconds)
      return
    }
    let text = whole < 0 ? "-\(-whole - 1).\(Self.complement(digits))" : "\(whole).\(Self.text(digits))"
    guard let moment = Double(text) else { return nil }
    self.init(sinceReference: moment)
  }

  /// Seconds since 1970-01-01T00:00:00Z, rounded down.
  public var seconds: Int64 { Int64(clamping: Int128(sinceReference.rounded(.down)) + Self.reference) }

  /// The fewest decimal digits behind `seconds` that give the same moment; nil: it is a whole second.
  public var fraction: String? {
    let whole = sinceReference.rounded(.down)
    guard whole != sinceReference else { return nil }
    if Self.isClose(sinceReference) { return Self.nanoseconds(sinceReference - whole) }
    // A double of this size is written without an exponent.
    let digits = sinceReference.description.utf8.drop { $0 != ASCII.point }.dropFirst()
    return sinceReference < 0 ? Self.complement(digits) : Self.text(digits)
  }
}

extension SettingDate: ExpressibleByIntegerLiteral {
  /// Seconds since 1970-01-01T00:00:00Z.
  public init(integerLiteral seconds: Int64) {
    self.init(seconds: seconds)
  }
}

extension SettingDate: Comparable {
  /// The order in time.
  public static func < (left: SettingDate, right: SettingDate) -> Bool {
    left.sinceReference < right.sinceReference
  }
}

extension SettingDate: CustomStringConvertible {
  /// ISO 8601 in UTC: `2026-11-21T07:53:00Z`, or with a fraction `2026-11-21T07:53:00.25Z`.
  public var description: String {
    let text = Timestamp(seconds: seconds).iso8601
    return fraction.map { "\(text.dropLast()).\($0)Z" } ?? text
  }
}

extension SettingDate {
  private static func isClose(_ seconds: Double) -> Bool { abs(seconds) < 1e-4 }

  private static func nanoseconds(_ fraction: Double) -> String {
    let digits = "\(Int((fraction * 1e9).rounded()))"
    let padded = String(repeating: "0", count: max(0, 9 - digits.count)) + digits
    return text(significant(padded.utf8))
  }

  /// Without zeros at the end.
  private static func significant(_ digits: some Collection<UInt8>) -> [UInt8] {
    var digits = Array(digits)
    while digits.last == ASCII.zero { digits.removeLast() }
    return digits
  }

  /// The complement to one: `75` for `25`. The last digit is not zero.
  private static func complement(_ digits: some Collection<UInt8>) -> String {
    let nines = digits.dropLast().map { ASCII.zero + 9 - ($0 - ASCII.zero) }
    return text(nines + digits.suffix(1).map { ASCII.zero + 10 - ($0 - ASCII.zero) })
  }

  private static func text(_ digits: some Collection<UInt8>) -> String {
    String(decoding: digits, as: UTF8.self)
  }
}
