import Model

/// Looks at text in UTF-8 without a copy of it.
enum UTF8Text {
  static func isValid(_ text: Span<UInt8>) -> Bool { fault(in: text) == nil }

  /// The offset at which text stops being well-formed; nil: all of it is.
  static func fault(in text: Span<UInt8>) -> Int? {
    var check = UTF8Check()
    var isComplete = true
    for index in text.indices {
      let byte = text[index]
      if isComplete, byte < 0x80 { continue }
      guard check.append(byte) else { return index }
      isComplete = check.isComplete
    }
    return isComplete ? nil : text.count
  }

  /// The scalar that begins at an offset, and the number of its bytes; nil: there is none, or it is not well-formed.
  static func scalar(_ text: Span<UInt8>, _ start: Int) -> (Unicode.Scalar, Int)? {
    var check = UTF8Check()
    var number: UInt32 = 0
    for index in start..<max(start, min(text.count, start &+ 4)) {
      let byte = text[index]
      guard check.append(byte) else { return nil }
      let bits: UInt8 =
        index > start || byte < 0x80
        ? byte & 0x7F : byte & (0x3F >> (byte >= 0xF0 ? 3 : byte >= 0xE0 ? 2 : 1))
      number = number << 6 | UInt32(truncatingIfNeeded: index > start ? bits & 0x3F : bits)
      if check.isComplete { return Unicode.Scalar(number).map { ($0, index &- start &+ 1) } }
    }
    return nil
  }

  /// Whether a reader that trims white space, by whichever table, would trim this text at an end.
  static func hasBlankEnds(_ text: Span<UInt8>) -> Bool {
    guard !text.isEmpty else { return false }
    if isBlankASCII(text[0]) || isBlankASCII(text[text.count &- 1]) { return true }
    if let (first, _) = scalar(text, 0), isBlank(first) { return true }
    for count in 2...3 where text.count >= count {
      if let (last, length) = scalar(text, text.count &- count), length == count, isBlank(last) {
        return true
      }
    }
    return false
  }

  /// The white space of Unicode, of Python, JavaScript and Go.
  static func isBlank(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar.value {
    case 0x09...0x0D, 0x1C...0x20, 0x85, 0xA0, 0x1680, 0x180E, 0x2000...0x200B, 0x2028, 0x2029, 0x202F,
      0x205F, 0x3000,
      0xFEFF:
      true
    default: false
    }
  }

  private static func isBlankASCII(_ byte: UInt8) -> Bool {
    (0x09...0x0D).contains(byte) || (0x1C...0x20).contains(byte)
  }
}

extension UInt8 {
  var isBlank: Bool { self == 0x20 || self == 0x09 }
  /// Of ASCII, without the tab.
  var isControl: Bool { self < 0x20 && self != 0x09 || self == 0x7F }
  var isASCIILetter: Bool { (0x61...0x7A).contains(self | 0x20) }
  var isDigit: Bool { (0x30...0x39).contains(self) }
}
