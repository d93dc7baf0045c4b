import Model
import SecretMemory

/// Collects steps; equal neighbours become one.
struct SpellingBuilder {
  private(set) var steps: [SpellingStep] = []

  mutating func verbatim(_ count: Int = 1) {
    guard count > 0 else { return }
    if case .verbatim(let before) = steps.last {
      steps[steps.count - 1] = .verbatim(before &+ count)
    } else {
      steps.append(.verbatim(count))
    }
  }

  mutating func syntax(_ byte: UInt8) { syntax([byte]) }

  mutating func syntax(_ text: [UInt8]) {
    if case .syntax(let before) = steps.last {
      steps[steps.count - 1] = .syntax(before + text)
    } else {
      steps.append(.syntax(text))
    }
  }

  mutating func add(_ step: SpellingStep) { steps.append(step) }
}

/// Bytes of the text to bytes of the value by steps, and back.
enum Spelling {
  private static let letters: [(letter: UInt8, byte: UInt8)] = [
    (UInt8(ascii: "n"), 0x0A), (UInt8(ascii: "r"), 0x0D), (UInt8(ascii: "t"), 0x09),
    (UInt8(ascii: "b"), 0x08),
    (UInt8(ascii: "f"), 0x0C), (UInt8(ascii: "v"), 0x0B), (UInt8(ascii: "a"), 0x07),
  ]

  /// The byte for which a letter stands behind a backslash.
  static func byte(_ letter: UInt8) -> UInt8? { letters.first { $0.letter == letter }?.byte }

  static func letter(_ byte: UInt8) -> UInt8? { letters.first { $0.byte == byte }?.letter }

  /// Decodes what stands at `start`; the steps are those with which it was read.
  static func decode(
    _ text: Span<UInt8>, from start: Int, _ steps: [SpellingStep], to writer: inout SecretWriter
  ) throws(ViewError) {
    var position = start
    for step in steps {
      switch step {
      case .verbatim(let count):
        try writer.append(text.extracting(position..<position &+ count))
        position &+= count
      case .syntax(let syntax): position &+= syntax.count
      case .letter:
        try writer.append(byte(text[position &+ 1]) ?? 0)
        position &+= 2
      case .unit:
        try writer.append(Unicode.Scalar(unit(text, position)) ?? "\u{FFFD}")
        position &+= 6
      case .pair:
        let high = unit(text, position) & 0x3FF
        let low = unit(text, position &+ 6) & 0x3FF
        try writer.append(Unicode.Scalar(0x10000 &+ (high << 10) &+ low) ?? "\u{FFFD}")
        position &+= 12
      }
    }
  }

  /// Writes a value with the steps of another one of the same shape.
  ///
  /// - Returns: false where the steps do not fit the value.
  static func write(
    _ value: Span<UInt8>, _ steps: [SpellingStep], to writer: inout SecretWriter
  ) throws(ViewError) -> Bool {
    var position = 0
    for step in steps {
      switch step {
      case .verbatim(let count):
        guard count <= value.count &- position else { return false }
        try writer.append(value.extracting(position..<position &+ count))
        position &+= count
      case .syntax(let syntax): try writer.append(syntax)
      case .letter:
        guard position < value.count, let letter = letter(value[position]) else { return false }
        try writer.append([UInt8(ascii: "\\"), letter])
        position &+= 1
      case .unit(let mask):
        guard let (scalar, count) = UTF8Text.scalar(value, position), scalar.value < 0x10000 else {
          return false
        }
        try writeUnit(scalar.value, mask, to: &writer)
        position &+= count
      case .pair(let mask):
        guard let (scalar, count) = UTF8Text.scalar(value, position), scalar.value >= 0x10000 else {
          return false
        }
        let rest = scalar.value &- 0x10000
        try writeUnit(0xD800 | rest >> 10, mask >> 4, to: &writer)
        try writeUnit(0xDC00 | rest & 0x3FF, mask & 0xF, to: &writer)
        position &+= count
      }
    }
    return position == value.count
  }

  /// The number of `\uXXXX`, whose digits the reader has checked.
  static func unit(_ text: Span<UInt8>, _ position: Int) -> UInt32 {
    (2..<6).reduce(0) { $0 << 4 | UInt32(truncatingIfNeeded: Hexadecimal.value(text[position &+ $1]) ?? 0) }
  }

  /// Which of the digits of `\uXXXX` are upper-case letters.
  static func mask(_ text: Span<UInt8>, _ position: Int) -> UInt8 {
    (2..<6).reduce(0) { $0 << 1 | ((0x41...0x46).contains(text[position &+ $1]) ? 1 : 0) }
  }

  private static func writeUnit(_ number: UInt32, _ mask: UInt8, to writer: inout SecretWriter)
    throws(ViewError)
  {
    try writer.append([UInt8(ascii: "\\"), UInt8(ascii: "u")])
    for place in [3, 2, 1, 0] as [UInt32] {
      let digit = UInt8(truncatingIfNeeded: number >> (4 &* place) & 0xF)
      try writer.append(
        Hexadecimal.digit(digit, isUpperCase: mask >> UInt8(truncatingIfNeeded: place) & 1 == 1))
    }
  }
}

enum Hexadecimal {
  static func value(_ digit: UInt8) -> UInt8? {
    switch digit {
    case 0x30...0x39: digit &- 0x30
    case 0x41...0x46: digit &- 0x41 &+ 10
    case 0x61...0x66: digit &- 0x61 &+ 10
    default: nil
    }
  }

  static func digit(_ value: UInt8, isUpperCase: Bool) -> UInt8 {
    value < 10 ? 0x30 &+ value : (isUpperCase ? 0x41 : 0x61) &+ value &- 10
  }
}

extension SecretWriter {
  mutating func append(_ scalar: Unicode.Scalar) throws(ViewError) {
    for byte in UTF8.encode(scalar).map(Array.init) ?? [] { try append(byte) }
  }
}

extension ViewDocument.Entry {
  /// The decoded value.
  func value(in source: borrowing SecretBytes) throws(ViewError) -> SecretBytes {
    var writer = try SecretWriter(capacity: range.count)
    try Spelling.decode(source.span, from: range.lowerBound, steps, to: &writer)
    guard coding == .basicAuthentication else { return writer.finish() }
    return try Base64Password.password(of: writer.finish(), user: user)
  }
}
