import CSystem

/// A pseudo-terminal (pty(7)): what a program writes to one side can be read from the other.
package struct PseudoTerminal: ~Copyable {
  /// The emulator's side.
  package let emulator: Descriptor
  /// The program's side.
  package let program: Descriptor

  /// Opens one with the modes and the window size of a terminal. - Throws: EMFILE, ENOSPC: there are no more.
  package init(like terminal: Int32) throws(Errno) {
    var ends: [Int32] = [-1, -1]
    // SAFETY: the array has the two elements that are written.
    try Errno.retrying { unsafe linux_pseudo_terminal(&ends) }
    let (number, other) = (ends[0], ends[1])
    let emulator = Descriptor(owning: number)
    let program = Descriptor(owning: other)
    try TerminalModes(of: terminal).set(on: other)
    WindowSize(of: terminal)?.set(on: number)
    self.emulator = emulator
    self.program = program
  }
}

extension Descriptor {
  /// Puts bytes into a terminal's input, as if they were typed (ioctl_tty(2), TIOCSTI), as far as the kernel allows it.
  package func type(_ bytes: Span<UInt8>) {
    // SAFETY: the pointer is used during the call.
    unsafe bytes.withUnsafeBufferPointer { bytes in
      guard let start = bytes.baseAddress else { return }
      _ = unsafe linux_type(number, start, bytes.count)
    }
  }
}

/// The rows and columns of a terminal.
package struct WindowSize: Equatable, Sendable {
  private let values: [UInt16]

  /// ioctl_tty(2) TIOCGWINSZ. nil: it is no terminal.
  package init?(of terminal: Int32) {
    var values: [UInt16] = [0, 0, 0, 0]
    // SAFETY: the array has the four elements that are written.
    guard unsafe linux_window_size(terminal, &values) == 0 else { return nil }
    self.values = values
  }

  /// ioctl_tty(2) TIOCSWINSZ: the foreground group of the terminal gets SIGWINCH.
  package func set(on terminal: Int32) {
    // SAFETY: the array has the four elements that are read.
    _ = unsafe linux_set_window_size(terminal, values)
  }
}
