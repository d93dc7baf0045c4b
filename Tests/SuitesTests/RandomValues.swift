import Model
import TestSupport

extension SplitMix64 {
  mutating func string(_ scalars: [ClosedRange<UInt32>]) -> ExactString {
    var text = String.UnicodeScalarView()
    for _ in 0..<Int.random(in: 0...12, using: &self) {
      let range = scalars[Int.random(in: 0..<scalars.count, using: &self)]
      if let scalar = Unicode.Scalar(UInt32.random(in: range, using: &self)) { text.append(scalar) }
    }
    return ExactString(String(text))
  }

  /// All that strings can hold, much of it troublesome.
  static let anything: [ClosedRange<UInt32>] = [
    0...0x1F, 0x20...0x7F, 0x20...0x7F, 0x26...0x27, 0x3C...0x3E, 0x80...0x7FF, 0x300...0x310,
    0xFEFF...0xFEFF,
    0xFFF0...0xFFFF, 0x1F600...0x1F64F, 0x10FFF0...0x10FFFF,
  ]
  /// The characters that XML 1.0 can hold.
  static let plain: [ClosedRange<UInt32>] = [
    0x20...0x7F, 0x20...0x7F, 0x26...0x27, 0x3C...0x3E, 0x9...0xA, 0xD...0xD, 0x80...0x7FF, 0x1F600...0x1F64F,
  ]

  /// Half of them with a fraction.
  private mutating func date() -> SettingDate {
    let seconds = Int64.random(in: -8_000_000_000_000_000...8_000_000_000_000_000, using: &self)
    let whole = SettingDate(seconds: seconds >> Int64.random(in: 0...50, using: &self))
    guard next() & 1 == 0 else { return whole }
    return SettingDate(sinceReference: whole.sinceReference + Double.random(in: 0..<1, using: &self)) ?? whole
  }

  mutating func value(_ scalars: [ClosedRange<UInt32>] = Self.anything, depth: Int = 0) -> SettingValue {
    switch Int.random(in: 0..<(depth < 4 ? 10 : 8), using: &self) {
    case 0: .integer(Int128(Int64(bitPattern: next()) >> Int64.random(in: 0...63, using: &self)))
    case 1: .integer(Int128(next() >> UInt64.random(in: 0...63, using: &self)))
    case 2: .real(real())
    case 3: .bool(next() & 1 == 0)
    case 4:
      .date(date())
    case 5: .data((0..<Int.random(in: 0...200, using: &self)).map { _ in UInt8(truncatingIfNeeded: next()) })
    case 6, 7: .string(string(scalars))
    case 8: .array((0..<Int.random(in: 0...5, using: &self)).map { _ in value(scalars, depth: depth + 1) })
    default: .dictionary(entries(scalars, depth: depth + 1))
    }
  }

  mutating func entries(_ scalars: [ClosedRange<UInt32>] = Self.anything, depth: Int = 0) -> [ExactString:
    SettingValue]
  {
    var entries: [ExactString: SettingValue] = [:]
    for _ in 0..<Int.random(in: 0...6, using: &self) {
      entries[string(scalars)] = next() % 16 == 0 ? .uid(next() >> 32) : value(scalars, depth: depth)
    }
    return entries
  }

  private mutating func real() -> Double {
    let number = Double(bitPattern: next())
    return number.isNaN ? .nan : number
  }
}
