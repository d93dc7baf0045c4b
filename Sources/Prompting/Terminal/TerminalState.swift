import Platform

/// The modes of a terminal before a dialog was drawn on it, to be put back whatever ends the dialog.
struct TerminalState: Sendable {
  private let device: String
  private let modes: TerminalModes

  /// nil: it is no terminal, or can't be opened.
  init?(_ device: String) {
    guard let file = try? Self.open(device), let modes = try? TerminalModes(of: file.number) else {
      return nil
    }
    self.device = device
    self.modes = modes
  }

  /// Puts the modes back. `drawn`: the dialog could not take itself off the screen, which is cleared then.
  func restore(drawn: Bool) {
    guard let file = try? Self.open(device) else { return }
    if drawn { try? file.write(Array(Self.leavingDialog.utf8)) }
    try? modes.set(on: file.number)
  }

  /// It stays the terminal of the session that has it.
  private static func open(_ device: String) throws(Errno) -> Descriptor {
    try Descriptor(device, [.readingAndWriting, .noControllingTerminal, .nonBlocking])
  }

  /// Ends the alternate screen, shows the cursor, takes colours back, and clears (ECMA-48, xterm).
  private static let leavingDialog = "\u{1B}[?1049l\u{1B}[?25h\u{1B}[0m\u{1B}[H\u{1B}[2J"
}
