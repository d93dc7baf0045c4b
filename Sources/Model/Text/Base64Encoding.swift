/// Base 64 (RFC 4648) of bytes, character by character: no copy of a secret is made.
package enum Base64Encoding {
  private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)

  /// Calls `body` with each character, padding included.
  package static func write<Failure: Error>(
    _ bytes: Span<UInt8>, _ body: (UInt8) throws(Failure) -> Void
  ) throws(Failure) {
    var start = 0
    while start < bytes.count {
      let count = min(3, bytes.count - start)
      var bits: UInt32 = 0
      for index in 0..<3 {
        bits = bits << 8 | (index < count ? UInt32(truncatingIfNeeded: bytes[start + index]) : 0)
      }
      for index in 0..<4 {
        let isPadding = index > count
        try body(
          isPadding
            ? UInt8(ascii: "=") : alphabet[Int(bits >> (18 &- 6 &* UInt32(truncatingIfNeeded: index)) & 63)])
      }
      start += 3
    }
  }

  /// The text for bytes that are no secret.
  package static func text(of bytes: [UInt8]) -> String {
    var characters: [UInt8] = []
    write(bytes.span) { characters.append($0) }
    return String(decoding: characters, as: UTF8.self)
  }
}
