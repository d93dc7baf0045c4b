import Model
import SecretMemory

/// RFC 4648, section 6, in capitals or small letters.
enum Base32 {
  /// The bytes of digits that `KeyURI.check` has taken; `%3D` and `=` at the end are none.
  static func decode(_ digits: Span<UInt8>) throws(StoreError) -> SecretBytes {
    var decoded = try CodeGenerator.empty(count: digits.count * 5 / 8)
    var (bits, count, length) = (UInt32(0), 0, 0)
    var reader = DecodedBytes(digits)
    while let digit = reader.next().flatMap(value) {
      bits = bits << 5 | UInt32(digit)
      count += 5
      guard count >= 8 else { continue }
      count -= 8
      decoded[length] = UInt8(truncatingIfNeeded: bits >> UInt32(count))
      length += 1
    }
    do { try decoded.resize(to: length) } catch { throw .outOfMemory }
    return decoded
  }

  /// nil: it is no digit.
  static func value(_ byte: UInt8) -> UInt8? {
    switch byte {
    case UInt8(ascii: "A")...UInt8(ascii: "Z"): byte - UInt8(ascii: "A")
    case UInt8(ascii: "a")...UInt8(ascii: "z"): byte - UInt8(ascii: "a")
    case UInt8(ascii: "2")...UInt8(ascii: "7"): byte - UInt8(ascii: "2") + 26
    default: nil
    }
  }
}
