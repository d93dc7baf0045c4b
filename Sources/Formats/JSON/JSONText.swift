import SecretMemory

/// JSON (RFC 8259) between bytes and bytes, so that a secret in it is never a string of Swift's.
package enum JSONText {
  /// Writes the text between the quotes.
  package static func write(_ bytes: Span<UInt8>, to sink: ByteSink) throws(FormatError) {
    for index in bytes.indices {
      let byte = bytes[index]
      switch byte {
      case UInt8(ascii: "\""), UInt8(ascii: "\\"):
        try sink.write(UInt8(ascii: "\\"))
        try sink.write(byte)
      case 0x0A: try sink.write("\\n")
      case 0x09: try sink.write("\\t")
      case 0..<0x20, 0x7F: try sink.write("\\u00" + (byte < 16 ? "0" : "") + String(byte, radix: 16))
      default: try sink.write(byte)
      }
    }
  }

  package static func write(_ text: String, to sink: ByteSink) throws(FormatError) {
    try write(text.utf8.span, to: sink)
  }

  static func decode(
    _ source: ByteSource, _ range: Range<Int>, into decoded: inout DecodedSecret
  ) throws(FormatError) {
    var index = range.lowerBound
    while index < range.upperBound {
      guard source[index] == UInt8(ascii: "\\") else {
        try decoded.append(source[index])
        index += 1
        continue
      }
      index = try decodeEscape(source, index + 1, into: &decoded)
    }
  }

  /// Returns where what follows the escape begins.
  private static func decodeEscape(
    _ source: ByteSource, _ index: Int, into decoded: inout DecodedSecret
  ) throws(FormatError) -> Int {
    switch source[index] {
    case UInt8(ascii: "b"): try decoded.append(0x08 as UInt8)
    case UInt8(ascii: "f"): try decoded.append(0x0C as UInt8)
    case UInt8(ascii: "n"): try decoded.append(0x0A as UInt8)
    case UInt8(ascii: "r"): try decoded.append(0x0D as UInt8)
    case UInt8(ascii: "t"): try decoded.append(0x09 as UInt8)
    case UInt8(ascii: "u"): return try decodeUnit(source, index + 1, into: &decoded)
    case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): try decoded.append(source[index])
    default: throw FormatError("an unknown escape in a string at byte \(index)")
    }
    return index + 1
  }

  private static func decodeUnit(
    _ source: ByteSource, _ index: Int, into decoded: inout DecodedSecret
  ) throws(FormatError) -> Int {
    let first = try unit(source, index)
    if let scalar = Unicode.Scalar(first) {
      try decoded.append(scalar)
      return index + 4
    }
    let half = FormatError("half a character in a string at byte \(index)")
    guard first < 0xDC00, source.starts("\\u", at: index + 4) else { throw half }
    let second = try unit(source, index + 6)
    guard second & 0xFC00 == 0xDC00,
      let scalar = Unicode.Scalar(0x10000 + (first & 0x3FF) << 10 + (second & 0x3FF))
    else { throw half }
    try decoded.append(scalar)
    return index + 10
  }

  private static func unit(_ source: ByteSource, _ index: Int) throws(FormatError) -> UInt32 {
    guard index + 4 <= source.count,
      let value = Digits.number((index..<index + 4).map { source[$0] }, radix: 16)
    else { throw FormatError("an escape is not four hexadecimal digits at byte \(index)") }
    return UInt32(value)
  }
}
