/// Whether the alternate screen of a terminal is on, as the sequences DECSET and DECRST 47, 1047 and 1049 of xterm's ctlseqs
/// switch it, and RIS off.
struct AlternateScreen {
  private enum Phase {
    case text, escape, bracket, parameters
  }

  private(set) var isOn = false
  private var phase = Phase.text
  private var number = 0
  private var isNamed = false

  /// Follows one byte of the output.
  mutating func take(_ byte: UInt8) {
    guard byte != 0x1B else {
      phase = .escape
      return
    }
    switch phase {
    case .text: return
    case .escape:
      // ESC c: a reset of the terminal.
      if byte == UInt8(ascii: "c") { isOn = false }
      phase = byte == UInt8(ascii: "[") ? .bracket : .text
    case .bracket:
      phase = byte == UInt8(ascii: "?") ? .parameters : .text
      (number, isNamed) = (0, false)
    case .parameters: takeParameter(byte)
    }
  }

  private mutating func takeParameter(_ byte: UInt8) {
    if (0x30...0x39).contains(byte) {
      number = min(number * 10 + Int(byte &- 0x30), 100_000)
      return
    }
    isNamed = isNamed || [47, 1047, 1049].contains(number)
    number = 0
    guard byte != UInt8(ascii: ";") else { return }
    if isNamed, byte == UInt8(ascii: "h") { isOn = true }
    if isNamed, byte == UInt8(ascii: "l") { isOn = false }
    phase = .text
  }
}
