import Model
import TestSupport

extension SplitMix64 {
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
