/// The modes of a terminal before a dialog was drawn on it, to be put back whatever ends the dialog.
package struct TerminalState: Sendable {
  private let device: String
  private let modes: TerminalModes

  /// nil: it is no terminal, or can't be opened.
  package init?(_ device: String) {
    guard let file = try? Self.open(device), let modes = try? TerminalModes(of: file.number) else {
      return nil
    }
    self.device = device
    self.modes = modes
  }

  /// From now on the terminal does not show what is typed, until `restore`, and Ctrl-Z stops no program: the shell would read
  /// the keys beside the dialog, which is in another process group.
  package func hideTyping() {
    guard let file = try? Self.open(device) else { return }
    try? modes.withoutEcho.withoutStopKey.set(on: file.number)
  }

  /// Drops what was typed: it is no answer to a question that was not shown yet.
  package func dropInput() {
    guard let file = try? Self.open(device) else { return }
    TerminalModes.dropInput(of: file.number)
  }

  /// Whether the terminal showed what is typed, and does not now: the process that has changed that did not end in order.
  package var isHidden: Bool {
    guard let file = try? Self.open(device), let present = try? TerminalModes(of: file.number) else {
      return false
    }
    return modes.echoes && !present.echoes && present.hasSignalKeys(of: modes.withoutStopKey)
  }

  /// Puts the modes back, and drops what was typed: it was for the dialog, and must not become another program's input.
  /// Modes that another program has set meanwhile stay, such as those of a shell that took the terminal back.
  /// `drawn`: the dialog could not take itself off the screen, which is cleared then. `hidden`: `hideTyping` was called.
  package func restore(drawn: Bool, hidden: Bool = false) {
    guard let file = try? Self.open(device) else { return }
    if drawn { try? file.write(Array(Self.leavingDialog.utf8)) }
    let expected = hidden ? modes.withoutStopKey : modes
    guard let present = try? TerminalModes(of: file.number), present.hasSignalKeys(of: expected) else {
      return
    }
    try? modes.set(on: file.number)
    TerminalModes.dropInput(of: file.number)
  }

  /// It stays the terminal of the session that has it.
  private static func open(_ device: String) throws(Errno) -> Descriptor {
    try Descriptor(device, [.readingAndWriting, .noControllingTerminal, .nonBlocking])
  }

  /// Ends the alternate screen, shows the cursor, takes colours back, and clears (ECMA-48, xterm).
  private static let leavingDialog = "\u{1B}[?1049l\u{1B}[?25h\u{1B}[0m\u{1B}[H\u{1B}[2J"
}
