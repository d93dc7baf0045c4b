/// How many bytes hide how long a plaintext is.
enum Padding {
  /// Steps of 32 bytes up to 256, then Padmé (Nikitin and others, PETS 2019): at most 12 % more.
  static func padded(_ count: Int) -> Int {
    guard count > 256 else { return max(32, (count + 31) / 32 * 32) }
    let exponent = Int.bitWidth - 1 - count.leadingZeroBitCount
    let mantissa = Int.bitWidth - exponent.leadingZeroBitCount
    let mask = (1 << (exponent - mantissa)) - 1
    return (count + mask) & ~mask
  }
}
