/// Base 64 as RFC 4648 has it, with white space anywhere between.
enum Base64 {
  private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)

  /// The value of a character; 64: white space, 65: padding, 66: not valid.
  private static let meanings: [UInt8] = {
    var meanings = [UInt8](repeating: 66, count: 256)
    for (value, character) in alphabet.enumerated() { meanings[Int(character)] = UInt8(value) }
    for blank in [0x20, 0x09, 0x0A, 0x0D] { meanings[blank] = 64 }
    meanings[0x3D] = 65
    return meanings
  }()

  /// Missing padding is no harm; any other character is damage.
  static func decode(_ text: Span<UInt8>) throws(PropertyListError) -> [UInt8] {
    let meanings = meanings
    var bytes: [UInt8] = []
    var (bits, count, isPadded): (UInt32, Int, Bool) = (0, 0, false)
    bytes.reserveCapacity(text.count / 4 * 3 + 3)
    for index in text.indices {
      let meaning = meanings[Int(text[index])]
      if meaning == 64 { continue }
      if meaning == 65 {
        isPadded = true
        continue
      }
      guard meaning < 64, !isPadded else { throw PropertyListError("data that is not base 64") }
      bits = bits << 6 | UInt32(meaning)
      count += 1
      if count == 4 {
        bytes.append(UInt8(truncatingIfNeeded: bits >> 16))
        bytes.append(UInt8(truncatingIfNeeded: bits >> 8))
        bytes.append(UInt8(truncatingIfNeeded: bits))
        (bits, count) = (0, 0)
      }
    }
    guard count != 1 else { throw PropertyListError("data that is not base 64") }
    if count >= 2 { bytes.append(UInt8(truncatingIfNeeded: bits >> (count == 2 ? 4 : 10))) }
    if count == 3 { bytes.append(UInt8(truncatingIfNeeded: bits >> 2)) }
    return bytes
  }

  static func encode(_ bytes: Span<UInt8>, into text: inout [UInt8]) {
    let alphabet = alphabet
    var index = 0
    while index + 3 <= bytes.count {
      let bits = Int(bytes[index]) << 16 | Int(bytes[index + 1]) << 8 | Int(bytes[index + 2])
      text.append(alphabet[bits >> 18])
      text.append(alphabet[bits >> 12 & 63])
      text.append(alphabet[bits >> 6 & 63])
      text.append(alphabet[bits & 63])
      index += 3
    }
    let rest = bytes.count - index
    guard rest > 0 else { return }
    let bits = Int(bytes[index]) << 16 | (rest == 2 ? Int(bytes[index + 1]) << 8 : 0)
    text += [
      alphabet[bits >> 18], alphabet[bits >> 12 & 63], rest == 2 ? alphabet[bits >> 6 & 63] : 0x3D, 0x3D,
    ]
  }
}
