/// Base 64 (RFC 4648) between bytes and bytes.
package enum Base64Text {
  private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)

  /// With white space anywhere between.
  static func decode(
    _ source: ByteSource, _ range: Range<Int>, into decoded: inout DecodedSecret
  ) throws(FormatError) {
    var bits: UInt32 = 0
    var count = 0
    var padding = 0
    for index in range {
      let byte = source[index]
      if byte == 0x20 || (0x09...0x0D).contains(byte) { continue }
      if byte == UInt8(ascii: "=") {
        padding += 1
        continue
      }
      guard padding == 0, let value = value(byte) else { throw notBase64(index) }
      bits = bits << 6 | value
      count += 1
      switch count % 4 {
      case 2: try decoded.append(UInt8(truncatingIfNeeded: bits >> 4))
      case 3: try decoded.append(UInt8(truncatingIfNeeded: bits >> 2))
      case 0: try decoded.append(UInt8(truncatingIfNeeded: bits))
      default: break
      }
    }
    guard count % 4 != 1, padding <= 2 else { throw notBase64(range.upperBound) }
  }

  private static func notBase64(_ index: Int) -> FormatError {
    FormatError("data that is not base 64 at byte \(index)")
  }

  private static func value(_ byte: UInt8) -> UInt32? {
    switch byte {
    case 0x41...0x5A: UInt32(byte - 0x41)
    case 0x61...0x7A: UInt32(byte - 0x61) + 26
    case 0x30...0x39: UInt32(byte - 0x30) + 52
    case UInt8(ascii: "+"): 62
    case UInt8(ascii: "/"): 63
    default: nil
    }
  }

  package static func write(_ bytes: Span<UInt8>, to sink: ByteSink) throws(FormatError) {
    var index = 0
    while index < bytes.count {
      var bits: UInt32 = 0
      for step in 0..<3 {
        let place = index + step
        bits = bits << 8 | (place < bytes.count ? UInt32(bytes[place]) : 0)
      }
      for place in 0..<4 {
        let isPadding = index + place > bytes.count
        try sink.write(isPadding ? UInt8(ascii: "=") : alphabet[Int(bits >> (18 - 6 * UInt32(place))) & 63])
      }
      index += 3
    }
  }
}
