/// Checks UTF-8 byte by byte: table 3-7 of the Unicode standard.
public struct UTF8Check: Sendable {
  /// How many bytes of the present scalar are still to come.
  private var missing = 0
  /// The valid range of the next one; only the second byte of a scalar has narrower bounds.
  private var next: ClosedRange<UInt8> = 0x80...0xBF

  /// Begins between two scalars.
  public init() {}

  /// No scalar is left unfinished.
  public var isComplete: Bool { missing == 0 }

  /// Takes the next byte. False: the bytes are not well-formed, whatever follows.
  public mutating func append(_ byte: UInt8) -> Bool {
    guard missing > 0 else { return byte < 0x80 || begin(byte) }
    guard next.contains(byte) else { return false }
    missing -= 1
    next = 0x80...0xBF
    return true
  }

  private mutating func begin(_ byte: UInt8) -> Bool {
    switch byte {
    case 0xC2...0xDF: missing = 1
    case 0xE0...0xEF: missing = 2
    case 0xF0...0xF4: missing = 3
    default: return false
    }
    next = bounds(after: byte)
    return true
  }

  /// Leaves out overlong forms, surrogates and what lies above U+10FFFF.
  private func bounds(after byte: UInt8) -> ClosedRange<UInt8> {
    switch byte {
    case 0xE0: 0xA0...0xBF
    case 0xED: 0x80...0x9F
    case 0xF0: 0x90...0xBF
    case 0xF4: 0x80...0x8F
    default: 0x80...0xBF
    }
  }
}
