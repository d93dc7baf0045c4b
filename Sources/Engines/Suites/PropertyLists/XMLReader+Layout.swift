import Model

// The layout of property lists that this engine and Foundation write. What has it is skipped by eight bytes at once; all else
// is read as any XML.
extension XMLReader {
  /// Skips `<key>`, a text without references, and `</key>`. Returns the place of the text; nil: something else is here,
  /// and nothing is skipped.
  mutating func skipPlainKey() -> Range<Int>? {
    let start = position &+ 5
    guard let open = word(at: position), open & Word.five == Word.key, let end = plainEnd(from: start),
      let close = word(at: end), close & Word.six == Word.endOfKey
    else { return nil }
    position = end &+ 6
    return start..<end
  }

  /// Skips a string without references, an integer of at most 18 digits, or a boolean, without a character too many. False:
  /// something else is here, and nothing is skipped.
  mutating func skipPlainValue() -> Bool {
    guard let open = word(at: position) else { return false }
    switch open {
    case Word.string:
      guard let end = plainEnd(from: position &+ 8), word(at: end) == Word.endOfString,
        byte(at: end &+ 8) == UInt8(ascii: ">")
      else { return false }
      position = end &+ 9
      return true
    case Word.integer:
      guard byte(at: position &+ 8) == UInt8(ascii: ">"), let end = endOfDigits(from: position &+ 9),
        word(at: end) == Word.endOfInteger, byte(at: end &+ 8) == UInt8(ascii: "r"),
        byte(at: end &+ 9) == UInt8(ascii: ">")
      else { return false }
      position = end &+ 10
      return true
    case Word.false:
      position &+= 8
      return true
    case _ where open & Word.seven == Word.true:
      position &+= 7
      return true
    default: return false
    }
  }

  /// Skips white space.
  mutating func skipBlanks() {
    while position < bytes.count, Self.isBlank(bytes[position]) { position &+= 1 }
  }

  /// Where a text without references ends; nil: it has one, or does not end.
  private func plainEnd(from start: Int) -> Int? {
    let span = bytes.span
    var end = start
    while end < span.count {
      let byte = span[end]
      if byte == UInt8(ascii: "<") { return end }
      if byte == UInt8(ascii: "&") { return nil }
      end &+= 1
    }
    return nil
  }

  /// Behind up to 18 digits and a sign before them; nil: there are none, or more.
  private func endOfDigits(from start: Int) -> Int? {
    let first = byte(at: start) == UInt8(ascii: "-") ? start &+ 1 : start
    var end = first
    while let byte = byte(at: end), (0x30...0x39).contains(byte) { end &+= 1 }
    return (1...18).contains(end &- first) ? end : nil
  }

  private func byte(at index: Int) -> UInt8? { index < bytes.count ? bytes[index] : nil }

  /// Eight bytes as they stand, the first one in the lowest bits.
  private func word(at index: Int) -> UInt64? {
    guard index >= 0, index <= bytes.count &- 8 else { return nil }
    // SAFETY: every pattern of bits is a number, and the eight bytes are there.
    return unsafe bytes.withUnsafeBytes { bytes in
      unsafe UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: index, as: UInt64.self))
    }
  }
}

/// Tags as numbers, their first byte in the lowest bits.
private enum Word {
  static let five: UInt64 = 0xFF_FFFF_FFFF, six: UInt64 = 0xFFFF_FFFF_FFFF,
    seven: UInt64 = 0xFF_FFFF_FFFF_FFFF
  /// `<key>`
  static let key: UInt64 = 0x3E_7965_6B3C
  /// `</key>`
  static let endOfKey: UInt64 = 0x3E79_656B_2F3C
  /// `<string>`
  static let string: UInt64 = 0x3E67_6E69_7274_733C
  /// `</string`
  static let endOfString: UInt64 = 0x676E_6972_7473_2F3C
  /// `<integer`
  static let integer: UInt64 = 0x7265_6765_746E_693C
  /// `</intege`
  static let endOfInteger: UInt64 = 0x6567_6574_6E69_2F3C
  /// `<true/>`
  static let `true`: UInt64 = 0x3E_2F65_7572_743C
  /// `<false/>`
  static let `false`: UInt64 = 0x3E2F_6573_6C61_663C
}
