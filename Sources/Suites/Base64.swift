/// Base 64 as RFC 4648 has it, with white space anywhere between.
enum Base64 {
  private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)

  /// What a character stands for; 64: white space, 65: padding, 66: nothing.
  private static let meanings: [UInt8] = {
    var meanings = [UInt8](repeating: 66, count: 256)
    for (value, character) in alphabet.enumerated() { meanings[Int(character)] = UInt8(value) }
    for blank in [0x20, 0x09, 0x0A, 0x0D] { meanings[blank] = 64 }
    meanings[0x3D] = 65
    return meanings
  }()

  /// Missing padding is no harm; any other character is damage.
  static func decode(_ text: some Sequence<UInt8>) throws(PropertyListError) -> [UInt8] {
    let meanings = meanings
    var bytes: [UInt8] = []
    var (bits, count, padded): (UInt32, Int, Bool) = (0, 0, false)
    bytes.reserveCapacity(text.underestimatedCount / 4 * 3)
    for character in text {
      let meaning = meanings[Int(character)]
      if meaning == 64 { continue }
      if meaning == 65 {
        padded = true
        continue
      }
      guard meaning < 64, !padded else { throw PropertyListError("data that is not base 64") }
      bits = bits << 6 | UInt32(meaning)
      count += 1
      guard count == 4 else { continue }
      bytes += [
        UInt8(truncatingIfNeeded: bits >> 16), UInt8(truncatingIfNeeded: bits >> 8),
        UInt8(truncatingIfNeeded: bits),
      ]
      (bits, count) = (0, 0)
    }
    guard count != 1 else { throw PropertyListError("data that is not base 64") }
    if count >= 2 { bytes.append(UInt8(truncatingIfNeeded: bits >> (count == 2 ? 4 : 10))) }
    if count == 3 { bytes.append(UInt8(truncatingIfNeeded: bits >> 2)) }
    return bytes
  }

  static func encode(_ bytes: ArraySlice<UInt8>, into text: inout [UInt8]) {
    let alphabet = alphabet
    var index = bytes.startIndex
    while index < bytes.endIndex {
      let rest = min(3, bytes.endIndex - index)
      var bits: UInt32 = 0
      for offset in 0..<3 { bits = bits << 8 | (offset < rest ? UInt32(bytes[index + offset]) : 0) }
      for digit in 0..<4 {
        text.append(digit <= rest ? alphabet[Int(bits >> UInt32(18 - 6 * digit) & 63)] : 0x3D)
      }
      index += rest
    }
  }
}
