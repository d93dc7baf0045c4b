/// The text of a JSON string after its opening quote, byte by byte.
struct JSONString: Sendable {
  private enum Place {
    case text, escape, hexadecimal, lowEscape, lowMark, end
  }

  private var place = Place.text
  private var text: [UInt8] = []
  private var utf8 = UTF8Check()
  private var digits: [UInt32] = []
  /// The first half of a surrogate pair, whose second half has to come next.
  private var high: UInt32?

  /// Takes the next byte; false: no JSON string begins like this.
  mutating func append(_ byte: UInt8) -> Bool {
    switch place {
    case .text: appendText(byte)
    case .escape: appendEscape(byte)
    case .hexadecimal: appendDigit(byte)
    case .lowEscape: byte == ASCII.backslash && go(to: .lowMark)
    case .lowMark: byte == UInt8(ascii: "u") && go(to: .hexadecimal)
    case .end: false
    }
  }

  /// The text, once its closing quote was taken.
  mutating func takeText() -> ExactString? {
    place == .end ? ExactString(utf8: text) : nil
  }
}

extension JSONString {
  private mutating func go(to next: Place) -> Bool {
    place = next
    return true
  }

  private mutating func appendText(_ byte: UInt8) -> Bool {
    guard byte >= 0x20, utf8.append(byte) else { return false }
    if byte == ASCII.quote { return go(to: .end) }
    if byte == ASCII.backslash { return go(to: .escape) }
    text.append(byte)
    return true
  }

  private mutating func appendEscape(_ byte: UInt8) -> Bool {
    if byte == UInt8(ascii: "u") { return go(to: .hexadecimal) }
    guard let plain = Self.plain(ofEscape: byte) else { return false }
    text.append(plain)
    return go(to: .text)
  }

  private static func plain(ofEscape byte: UInt8) -> UInt8? {
    switch byte {
    case ASCII.quote, ASCII.backslash, UInt8(ascii: "/"): byte
    case UInt8(ascii: "b"): 0x08
    case UInt8(ascii: "f"): 0x0C
    case UInt8(ascii: "n"): 0x0A
    case UInt8(ascii: "r"): 0x0D
    case UInt8(ascii: "t"): 0x09
    default: nil
    }
  }

  private mutating func appendDigit(_ byte: UInt8) -> Bool {
    guard let digit = Character(Unicode.Scalar(byte)).hexDigitValue else { return false }
    digits.append(UInt32(digit))
    if digits.count < 4 { return isPossible }
    defer { digits = [] }
    return append(unit: digits.reduce(0) { $0 << 4 | $1 })
  }

  /// Tells half an escape that can only become a lone surrogate, or no surrogate where one is due.
  private var isPossible: Bool {
    let mayBeLow = digits[0] == 0xD && (digits.count < 2 || digits[1] >= 0xC)
    let isLow = digits[0] == 0xD && digits.count >= 2 && digits[1] >= 0xC
    return high == nil ? !isLow : mayBeLow
  }

  /// Takes a code unit of UTF-16; U+0000 is refused, because no property list can hold it.
  private mutating func append(unit: UInt32) -> Bool {
    if let first = high {
      high = nil
      return append(scalar: 0x10000 + (first & 0x3FF) << 10 + (unit & 0x3FF))
    }
    guard unit & 0xFC00 == 0xD800 else { return append(scalar: unit) }
    high = unit
    return go(to: .lowEscape)
  }

  private mutating func append(scalar: UInt32) -> Bool {
    guard scalar != 0, let scalar = Unicode.Scalar(scalar) else { return false }
    text.append(contentsOf: UTF8.encode(scalar).map(Array.init) ?? [])
    return go(to: .text)
  }
}
