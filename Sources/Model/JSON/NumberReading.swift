/// An integer in decimal, of the range of property lists.
struct IntegerReading: ContentReading {
  private var isNegative: Bool?
  private var magnitude: Int128?

  mutating func append(_ byte: UInt8) -> Bool {
    if ASCII.isDigit(byte) { return append(digit: Int128(byte - ASCII.zero)) }
    guard isNegative == nil, magnitude == nil else { return false }
    isNegative = byte == ASCII.minus
    return byte == ASCII.minus || byte == ASCII.plus
  }

  mutating func finish() -> SettingValue? { value.map(SettingValue.integer) }

  private var value: Int128? {
    magnitude.map { isNegative == true ? -$0 : $0 }
  }

  /// More digits never bring a number back into the range.
  private mutating func append(digit: Int128) -> Bool {
    magnitude = (magnitude ?? 0) * 10 + digit
    return value.map(SettingValue.integers.contains) ?? false
  }
}

/// A real in decimal, with or without an exponent, or one of the words for what is not finite.
///
/// Written out rather than left to strtod(3), which takes hexadecimal and asks the locale.
struct RealReading: ContentReading {
  private static let words = ["inf", "infinity", "nan"].flatMap { word in
    ["", "+", "-"].map { sign in Array((sign + word).utf8) }
  }

  private var number = NumberText(.any)
  private var word: [UInt8] = []
  private var isWord: Bool?

  mutating func append(_ byte: UInt8) -> Bool {
    if isWord == nil, byte != ASCII.plus, byte != ASCII.minus {
      isWord = !ASCII.isDigit(byte) && byte != ASCII.point
    }
    if isWord != false, !append(letter: byte) { return false }
    return isWord == true || number.append(byte)
  }

  mutating func finish() -> SettingValue? {
    guard isWord == true else { return number.real.map(SettingValue.real) }
    guard Self.words.contains(word) else { return nil }
    if word.last == UInt8(ascii: "n") { return .real(.nan) }
    return .real(word.first == ASCII.minus ? -.infinity : .infinity)
  }

  private mutating func append(letter byte: UInt8) -> Bool {
    word.append(ASCII.lowercased(byte))
    return Self.words.contains { $0.starts(with: word) }
  }
}

/// One of the words for true and false, in any case.
struct BoolReading: ContentReading {
  private static let words: [(text: [UInt8], value: Bool)] = [
    (Array("true".utf8), true), (Array("yes".utf8), true), (Array("1".utf8), true),
    (Array("false".utf8), false), (Array("no".utf8), false), (Array("0".utf8), false),
  ]

  private var word: [UInt8] = []

  mutating func append(_ byte: UInt8) -> Bool {
    word.append(ASCII.lowercased(byte))
    return Self.words.contains { $0.text.starts(with: word) }
  }

  mutating func finish() -> SettingValue? {
    Self.words.first { $0.text == word }.map { .bool($0.value) }
  }
}
