import Model

/// SplitMix64, so that a failure can be run again.
struct SeededGenerator: RandomNumberGenerator {
  private var state: UInt64

  init(seed: UInt64) {
    state = seed
  }

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
    return mixed ^ (mixed >> 31)
  }

  /// Any string of up to 16 scalars, full of what has to be escaped.
  mutating func name() -> ExactString {
    var text = String.UnicodeScalarView()
    for _ in 0..<Int.random(in: 0...16, using: &self) {
      let limit: UInt32 = [0x20, 0x80, 0x80, 0x800, 0x11_0000].randomElement(using: &self) ?? 0x80
      text.append(Unicode.Scalar(UInt32.random(in: 0..<limit, using: &self)) ?? "/")
    }
    return ExactString(String(text))
  }
}
