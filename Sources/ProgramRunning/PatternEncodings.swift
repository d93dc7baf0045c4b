import Platform
import SecretMemory

/// The two alphabets of RFC 4648. Digits are computed, not looked up: an index would tell the cache.
enum Base64Digits {
  case standard, url

  func digit(_ bits: UInt8) -> UInt8 {
    switch bits {
    case 0..<26: 0x41 &+ bits
    case 26..<52: 0x61 &+ bits &- 26
    case 52..<62: 0x30 &+ bits &- 52
    case 62: self == .standard ? 0x2B : 0x2D
    default: self == .standard ? 0x2F : 0x5F
    }
  }
}

/// Hexadecimal digits.
enum HexDigits: UInt8 {
  case lower = 0x61
  case upper = 0x41

  func add(_ byte: UInt8, _ add: SecretPatterns.Add) throws(SecretMemoryError) {
    try add(digit(byte >> 4))
    try add(digit(byte & 0xF))
  }

  private func digit(_ value: UInt8) -> UInt8 { value < 10 ? 0x30 &+ value : rawValue &+ value &- 10 }
}

/// A way to escape in URLs: RFC 3986, and the forms that libraries make of it.
struct URLForm {
  /// Kept besides letters, digits and `-._~`.
  var kept: String
  var digits = HexDigits.upper
  /// A blank becomes `+`: application/x-www-form-urlencoded.
  var hasPlus = false

  /// RFC 3986, with `/` as Python's `quote`, and a form, each in both cases of digits; JavaScript's `encodeURIComponent` and
  /// `encodeURI`; a form as the URL standard has it.
  static let all = [
    URLForm(kept: ""), URLForm(kept: "", digits: .lower), URLForm(kept: "/"),
    URLForm(kept: "/", digits: .lower), URLForm(kept: "!*'()"), URLForm(kept: "!*'();/?:@&=+$,#"),
    URLForm(kept: "", hasPlus: true), URLForm(kept: "", digits: .lower, hasPlus: true),
    URLForm(kept: "*", hasPlus: true),
  ]

  func escape(_ byte: UInt8, _ add: SecretPatterns.Add) throws(SecretMemoryError) {
    if hasPlus, byte == 0x20 { return try add(0x2B) }
    guard !isKept(byte) else { return try add(byte) }
    try add(0x25)
    try digits.add(byte, add)
  }

  private func isKept(_ byte: UInt8) -> Bool {
    switch byte {
    case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x2D, 0x2E, 0x5F, 0x7E: true
    default: kept.utf8.contains(byte)
    }
  }
}

/// A way to escape in the strings of JSON: RFC 8259, section 7.
struct JSONForm {
  /// `/` becomes `\/`, as in PHP.
  var escapesSlash = false
  /// Characters that are not ASCII become `\uXXXX`, as in Python.
  var isASCII = false
  /// `<`, `>` and `&` become `\u003c`, as in Go.
  var isForHTML = false

  static let all = [
    JSONForm(), JSONForm(escapesSlash: true), JSONForm(isASCII: true),
    JSONForm(escapesSlash: true, isASCII: true), JSONForm(isForHTML: true),
  ]

  func escape(_ scalar: UInt32, _ add: SecretPatterns.Add) throws(SecretMemoryError) {
    if let letter = letter(scalar) {
      try add(0x5C)
      return try add(letter)
    }
    if scalar < 0x20 || isASCII && scalar > 0x7E || isForHTML && [0x3C, 0x3E, 0x26].contains(scalar) {
      return try addEscapes(scalar, add)
    }
    try addUTF8(scalar, add)
  }

  private func letter(_ scalar: UInt32) -> UInt8? {
    switch scalar {
    case 0x22: 0x22
    case 0x5C: 0x5C
    case 0x2F: escapesSlash ? 0x2F : nil
    case 0x08: 0x62
    case 0x0C: 0x66
    case 0x0A: 0x6E
    case 0x0D: 0x72
    case 0x09: 0x74
    default: nil
    }
  }

  /// `\uXXXX`, twice where it takes a pair of surrogates.
  private func addEscapes(_ scalar: UInt32, _ add: SecretPatterns.Add) throws(SecretMemoryError) {
    guard scalar > 0xFFFF else { return try addEscape(scalar, add) }
    let rest = scalar &- 0x10000
    try addEscape(0xD800 &+ rest >> 10, add)
    try addEscape(0xDC00 &+ rest & 0x3FF, add)
  }

  private func addEscape(_ unit: UInt32, _ add: SecretPatterns.Add) throws(SecretMemoryError) {
    try add(0x5C)
    try add(0x75)
    try HexDigits.lower.add(UInt8(truncatingIfNeeded: unit >> 8), add)
    try HexDigits.lower.add(UInt8(truncatingIfNeeded: unit), add)
  }

  private func addUTF8(_ scalar: UInt32, _ add: SecretPatterns.Add) throws(SecretMemoryError) {
    let last = UInt8(truncatingIfNeeded: scalar & 0x3F) | 0x80
    let middle = UInt8(truncatingIfNeeded: scalar >> 6 & 0x3F) | 0x80
    switch scalar {
    case ..<0x80: try add(UInt8(truncatingIfNeeded: scalar))
    case ..<0x800:
      try add(0xC0 | UInt8(truncatingIfNeeded: scalar >> 6))
      try add(last)
    case ..<0x10000:
      try add(0xE0 | UInt8(truncatingIfNeeded: scalar >> 12))
      try add(middle)
      try add(last)
    default:
      try add(0xF0 | UInt8(truncatingIfNeeded: scalar >> 18))
      try add(UInt8(truncatingIfNeeded: scalar >> 12 & 0x3F) | 0x80)
      try add(middle)
      try add(last)
    }
  }
}

extension SecretPatterns {
  /// Nothing where the value is not UTF-8: then it is in no JSON.
  static func encodeJSON(
    _ value: Span<UInt8>, _ form: JSONForm, _ body: (Span<UInt8>) throws(SecretMemoryError) -> Void
  ) throws(SecretMemoryError) {
    var text = try PatternText(capacity: value.count * 2)
    var index = 0
    while index < value.count {
      guard let (scalar, length) = scalar(of: value, at: index) else { return }
      try form.escape(scalar) { byte throws(SecretMemoryError) in try text.add(byte) }
      index += length
    }
    try body(text.span)
  }

  private static func scalar(of value: Span<UInt8>, at index: Int) -> (UInt32, Int)? {
    let first = value[index]
    if first < 0x80 { return (UInt32(first), 1) }
    let length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2
    guard first >= 0xC2, first < 0xF5, index + length <= value.count else { return nil }
    var scalar = UInt32(first) & (length == 4 ? 0x7 : length == 3 ? 0xF : 0x1F)
    for offset in 1..<length {
      let byte = value[index + offset]
      guard byte & 0xC0 == 0x80 else { return nil }
      scalar = scalar << 6 | UInt32(byte & 0x3F)
    }
    let least: UInt32 = length == 4 ? 0x10000 : length == 3 ? 0x800 : 0x80
    guard scalar >= least, scalar < 0x110000, !(0xD800..<0xE000).contains(scalar) else { return nil }
    return (scalar, length)
  }
}
