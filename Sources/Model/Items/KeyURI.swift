/// An `otpauth:` URI, which one-time codes are computed from:
/// `otpauth://totp/ISSUER:ACCOUNT?secret=BASE32&issuer=ISSUER&algorithm=SHA1&digits=6&period=30`, or with `hotp` and
/// `counter=N`.
///
/// The form is the one that Google Authenticator's Key URI format describes. Parameters with other names are kept. It is
/// checked byte by byte, because it is a secret, of which nothing is to be copied.
public enum KeyURI {
  /// How it begins.
  public static let scheme = "otpauth://"

  /// - Throws: `invalidValue` with the reason.
  public static func check(_ bytes: Span<UInt8>) throws(StoreError) {
    var check = KeyURICheck()
    for index in bytes.indices { try check.take(bytes[index]) }
    try check.finish()
  }

  /// Whether two URIs differ at most in the digits of `counter`, as one does after a code was given out.
  public static func areSameButForCounter(_ one: Span<UInt8>, _ other: Span<UInt8>) -> Bool {
    let start = lengthOfCommonStart(one, other)
    guard start < max(one.count, other.count) else { return true }
    return counters(one, other, differingFrom: start) != nil
  }

  /// Whether two URIs differ in the digits of `counter` alone, and those of the first one are the higher number.
  public static func isCountedFurther(_ one: Span<UInt8>, than other: Span<UInt8>) -> Bool {
    let start = lengthOfCommonStart(one, other)
    guard start < max(one.count, other.count),
      let (digits, others) = counters(one, other, differingFrom: start)
    else { return false }
    let (high, low) = (significant(one, digits), significant(other, others))
    guard high.count == low.count else { return high.count > low.count }
    for (place, otherPlace) in zip(high, low) where one[place] != other[otherPlace] {
      return one[place] > other[otherPlace]
    }
    return false
  }

  private static func lengthOfCommonStart(_ one: Span<UInt8>, _ other: Span<UInt8>) -> Int {
    var start = 0
    while start < min(one.count, other.count), one[start] == other[start] { start += 1 }
    return start
  }

  /// The digits without leading zeros.
  private static func significant(_ bytes: Span<UInt8>, _ digits: Range<Int>) -> Range<Int> {
    var start = digits.lowerBound
    while start < digits.upperBound, bytes[start] == 0x30 { start += 1 }
    return start..<digits.upperBound
  }

  /// Where the counters of two URIs are that differ first at a place; nil: they differ in something else.
  private static func counters(
    _ one: Span<UInt8>, _ other: Span<UInt8>, differingFrom place: Int
  ) -> (Range<Int>, Range<Int>)? {
    var start = place
    while start > 0, isDigit(one[start - 1]) { start -= 1 }
    let name = Array("counter=".utf8)
    guard start > name.count,
      one[start - name.count - 1] == UInt8(ascii: "?")
        || one[start - name.count - 1] == UInt8(ascii: "&"),
      hasName(one, name, before: start)
    else { return nil }
    let (end, otherEnd) = (endOfDigits(one, from: start), endOfDigits(other, from: start))
    guard one.count - end == other.count - otherEnd else { return nil }
    for index in 0..<one.count - end where one[end + index] != other[otherEnd + index] { return nil }
    return (start..<end, start..<otherEnd)
  }

  private static func hasName(_ bytes: Span<UInt8>, _ name: [UInt8], before end: Int) -> Bool {
    for index in name.indices where bytes[end - name.count + index] != name[index] { return false }
    return true
  }

  private static func endOfDigits(_ bytes: Span<UInt8>, from start: Int) -> Int {
    var end = start
    while end < bytes.count, isDigit(bytes[end]) { end += 1 }
    return end
  }

  private static func isDigit(_ byte: UInt8) -> Bool { (0x30...0x39).contains(byte) }

  /// A name, percent-encoded as a component of a URI (RFC 3986, section 2.1).
  public static func escaped(_ text: String) -> String {
    var escaped = ""
    for byte in text.utf8 {
      let scalar = Unicode.Scalar(byte)
      let isPlain = byte < 0x80 && (scalar.properties.isAlphabetic || (0x30...0x39).contains(byte))
      if isPlain || "-._~@".unicodeScalars.contains(scalar) {
        escaped.unicodeScalars.append(scalar)
      } else {
        let digits = String(byte, radix: 16, uppercase: true)
        escaped += "%" + (digits.count == 1 ? "0" : "") + digits
      }
    }
    return escaped
  }
}

/// Follows an `otpauth:` URI while it is written.
public struct KeyURICheck: Sendable {
  private enum Part {
    case scheme
    case type
    case label
    case name
    case value(Parameter)
  }

  private enum Parameter: String {
    case secret
    case algorithm
    case digits
    case period
    case counter
    case other
  }

  private static let longestWord = 16

  private var part = Part.scheme
  /// How many bytes of the part were taken.
  private var count = 0
  /// Text that is no secret: the type, the name of a parameter, its value.
  private var word = ""
  private var isCounterBased = false
  private var hasCounter = false
  private var hasSecret = false
  /// Of the secret: `=` was met, after which nothing else may come.
  private var isPadded = false
  private var number: UInt64 = 0
  /// The value of the first digit behind `%`; -1: `%` was the last byte.
  private var escape: Int?

  /// Begins before the first byte.
  public init() {}

  /// - Throws: `invalidValue` as soon as nothing that could follow makes it an `otpauth:` URI.
  public mutating func take(_ byte: UInt8) throws(StoreError) {
    guard byte >= 0x20, byte != 0x7F else {
      throw Self.refusal("a URI is one line without control characters")
    }
    switch part {
    case .scheme: try takeScheme(byte)
    case .type: try takeType(byte)
    case .label: if byte == UInt8(ascii: "?") { begin(.name) }
    case .name: try takeName(byte)
    case .value(let parameter): try takeValue(byte, parameter)
    }
  }

  /// - Throws: `invalidValue` for what is not complete.
  public mutating func finish() throws(StoreError) {
    switch part {
    case .scheme, .type: throw Self.refusal("it begins with otpauth://totp/ or otpauth://hotp/")
    case .label: break
    case .name: break
    case .value(let parameter): try finish(parameter)
    }
    guard hasSecret else { throw Self.refusal("it has no parameter `secret`") }
    guard !isCounterBased || hasCounter else { throw Self.refusal("of the type hotp, it needs `counter`") }
  }

  private mutating func begin(_ part: Part) {
    (self.part, count, word, number) = (part, 0, "", 0)
  }

  private static func refusal(_ reason: String) -> StoreError {
    .invalidValue(reason: "not an otpauth URI: \(reason)")
  }
}

extension KeyURICheck {
  private mutating func takeScheme(_ byte: UInt8) throws(StoreError) {
    let scheme = KeyURI.scheme.utf8
    let expected = scheme[scheme.index(scheme.startIndex, offsetBy: count)]
    guard byte.lowercased == expected else { throw Self.refusal("it begins with \(KeyURI.scheme)") }
    count += 1
    if count == scheme.count { begin(.type) }
  }

  private mutating func takeType(_ byte: UInt8) throws(StoreError) {
    if byte != UInt8(ascii: "/"), word.utf8.count < 4 {
      return word.unicodeScalars.append(Unicode.Scalar(byte.lowercased))
    }
    guard byte == UInt8(ascii: "/"), word == "totp" || word == "hotp" else {
      throw Self.refusal("the type is totp or hotp")
    }
    isCounterBased = word == "hotp"
    begin(.label)
  }

  private mutating func takeName(_ byte: UInt8) throws(StoreError) {
    switch byte {
    case UInt8(ascii: "&"): begin(.name)
    case UInt8(ascii: "="):
      let parameter = Parameter(rawValue: word) ?? .other
      if parameter == .secret, hasSecret { throw Self.refusal("it has `secret` twice") }
      begin(.value(parameter))
    default: if word.utf8.count < Self.longestWord { word.unicodeScalars.append(Unicode.Scalar(byte)) }
    }
  }

  private mutating func takeValue(_ byte: UInt8, _ parameter: Parameter) throws(StoreError) {
    if let first = escape {
      guard let digit = byte.hexDigit else { throw Self.refusal("`%` stands before two hexadecimal digits") }
      guard first >= 0 else { return escape = digit }
      escape = nil
      return try takeDecoded(UInt8(first * 16 + digit), parameter)
    }
    switch byte {
    case UInt8(ascii: "&"):
      try finish(parameter)
      begin(.name)
    case UInt8(ascii: "%") where parameter != .other: escape = -1
    default: try takeDecoded(byte, parameter)
    }
  }

  private mutating func takeDecoded(_ byte: UInt8, _ parameter: Parameter) throws(StoreError) {
    switch parameter {
    case .other: return
    case .secret: try takeSecret(byte)
    case .algorithm:
      guard word.utf8.count < Self.longestWord else { throw Self.badAlgorithm }
      word.unicodeScalars.append(Unicode.Scalar(byte.lowercased))
    case .digits, .period, .counter:
      let digit = UInt64(byte &- 0x30)
      let (tens, isTooLarge) = number.multipliedReportingOverflow(by: 10)
      let (sum, overflows) = tens.addingReportingOverflow(digit)
      guard digit < 10, !isTooLarge, !overflows else {
        throw Self.refusal("`\(parameter.rawValue)` is a number")
      }
      (number, count) = (sum, count + 1)
    }
  }

  /// Base32 of RFC 4648, in capitals or small letters.
  private mutating func takeSecret(_ byte: UInt8) throws(StoreError) {
    guard byte != UInt8(ascii: "=") else { return isPadded = true }
    let isDigit = (UInt8(ascii: "2")...UInt8(ascii: "7")).contains(byte)
    let isLetter = (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte.lowercased)
    guard isDigit || isLetter, !isPadded else {
      throw Self.refusal("`secret` is not base32 (A to Z, 2 to 7)")
    }
    count += 1
  }

  private mutating func finish(_ parameter: Parameter) throws(StoreError) {
    guard escape == nil else { throw Self.refusal("`%` stands before two hexadecimal digits") }
    switch parameter {
    case .other: break
    case .secret:
      guard count >= 2 else { throw Self.refusal("`secret` is empty") }
      hasSecret = true
    case .algorithm: guard ["sha1", "sha256", "sha512"].contains(word) else { throw Self.badAlgorithm }
    case .digits:
      guard count > 0, (5...10).contains(number) else {
        throw Self.refusal("`digits` is a number from 5 to 10")
      }
    case .period: guard number > 0 else { throw Self.refusal("`period` is a number of seconds") }
    case .counter:
      guard count > 0 else { throw Self.refusal("`counter` is a number") }
      hasCounter = true
    }
  }

  private static let badAlgorithm = refusal("`algorithm` is SHA1, SHA256 or SHA512")
}

extension UInt8 {
  /// Of an ASCII letter the small one.
  fileprivate var lowercased: UInt8 { (0x41...0x5A).contains(self) ? self + 0x20 : self }

  fileprivate var hexDigit: Int? {
    switch self {
    case 0x30...0x39: Int(self) - 0x30
    case 0x41...0x46, 0x61...0x66: Int(lowercased) - 0x61 + 10
    default: nil
    }
  }
}
