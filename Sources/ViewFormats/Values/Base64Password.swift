import Model
import Platform
import SecretMemory

/// `USER:PASSWORD` as base 64 (RFC 4648), as docker's `auth` has it.
enum Base64Password {
  private static func value(_ byte: UInt8) -> UInt8? {
    switch byte {
    case 0x41...0x5A: byte &- 0x41
    case 0x61...0x7A: byte &- 0x61 &+ 26
    case 0x30...0x39: byte &- 0x30 &+ 52
    case UInt8(ascii: "+"): 62
    case UInt8(ascii: "/"): 63
    default: nil
    }
  }

  /// - Throws: `EINVAL` for what is not base 64 in its one form.
  static func decode(_ text: Span<UInt8>, to writer: inout SecretWriter) throws(ViewError) {
    let isPadded = text.count > 0 && text[text.count &- 1] == UInt8(ascii: "=")
    let padding = isPadded ? (text.count > 1 && text[text.count &- 2] == UInt8(ascii: "=") ? 2 : 1) : 0
    guard text.count % 4 == 0 else { throw notBase64 }
    var bits: UInt32 = 0
    for index in 0..<(text.count &- padding) {
      guard let value = value(text[index]) else { throw notBase64 }
      bits = bits << 6 | UInt32(truncatingIfNeeded: value)
      switch index % 4 {
      case 1: try writer.append(UInt8(truncatingIfNeeded: bits >> 4))
      case 2: try writer.append(UInt8(truncatingIfNeeded: bits >> 2))
      case 3: try writer.append(UInt8(truncatingIfNeeded: bits))
      default: break
      }
    }
    // Bits behind the last byte that are not zero would be a second form of the same bytes.
    guard padding == 0 || bits & (padding == 1 ? 0x3 : 0xF) == 0 else { throw notBase64 }
  }

  private static var notBase64: ViewError { ViewError(.EINVAL, "it is not base 64 of USER:PASSWORD") }

  /// The user, with the colon.
  static func user(of text: borrowing SecretBytes) throws(ViewError) -> [UInt8] {
    var decoded = try SecretWriter(capacity: text.count)
    try decode(text.span, to: &decoded)
    let bytes = decoded.finish()
    guard let colon = bytes.span.firstOffset(of: UInt8(ascii: ":")) else { throw notBase64 }
    return bytes.span.extracting(0...colon).array
  }

  /// The password behind the user, whose length is known.
  static func password(of text: consuming SecretBytes, user: [UInt8]) throws(ViewError) -> SecretBytes {
    var decoded = try SecretWriter(capacity: text.count)
    try decode(text.span, to: &decoded)
    return try decoded.copy(from: user.count)
  }

  /// - Returns: the text, without quotes.
  static func encode(_ password: Span<UInt8>, user: [UInt8]) throws(ViewError) -> SecretBytes {
    var plain = try SecretWriter(capacity: user.count &+ password.count)
    try plain.append(user)
    try plain.append(password)
    let bytes = plain.finish()
    var writer = try SecretWriter(capacity: bytes.count / 3 &* 4 &+ 4)
    try Base64Encoding.write(bytes.span) { (character) throws(ViewError) in try writer.append(character) }
    return writer.finish()
  }
}
