import Glibc

/// The modes of a terminal: termios(3).
package struct TerminalModes: Sendable {
  private var raw: termios

  /// tcgetattr(3). - Throws: ENOTTY: it is no terminal.
  package init(of terminal: Int32) throws(Errno) {
    var modes = termios()
    try Errno.retrying { unsafe tcgetattr(terminal, &modes) }
    raw = modes
  }

  /// Whether the terminal shows what is typed (ECHO).
  package var echoes: Bool { raw.c_lflag & tcflag_t(ECHO) != 0 }

  /// Whether the terminal passes on what is typed by lines (ICANON).
  package var passesLines: Bool { raw.c_lflag & tcflag_t(ICANON) != 0 }

  /// tcsetattr(3) with TCSANOW: gives a terminal these modes at once.
  package func set(on terminal: Int32) throws(Errno) {
    var modes = raw
    try Errno.retrying { unsafe tcsetattr(terminal, TCSANOW, &modes) }
  }

  /// The same, but every byte passes as it is, in both directions: cfmakeraw(3).
  package var passingBytes: TerminalModes {
    var modes = self
    unsafe cfmakeraw(&modes.raw)
    return modes
  }

  /// Whether this process may read a terminal and set its modes: it is in the foreground (tcgetpgrp(3)), or the terminal is
  /// not its controlling one.
  package static func isForeground(_ terminal: Int32) -> Bool {
    let group = tcgetpgrp(terminal)
    return group < 0 || group == getpgrp()
  }
}
