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

  /// Whether both have the same flags; characters may differ.
  package func hasFlags(of other: TerminalModes) -> Bool { flags == other.flags }

  private var flags: [tcflag_t] { [raw.c_iflag, raw.c_oflag, raw.c_cflag, raw.c_lflag] }

  /// Whether the terminal shows what is typed (ECHO).
  package var echoes: Bool { raw.c_lflag & tcflag_t(ECHO) != 0 }

  /// Whether the terminal passes on what is typed by lines (ICANON).
  package var passesLines: Bool { raw.c_lflag & tcflag_t(ICANON) != 0 }

  /// tcsetattr(3) with TCSANOW: gives a terminal these modes at once.
  package func set(on terminal: Int32) throws(Errno) {
    var modes = raw
    try Errno.retrying { unsafe tcsetattr(terminal, TCSANOW, &modes) }
  }

  /// tcflush(3) with TCIFLUSH: drops what was typed and not read.
  package static func dropInput(of terminal: Int32) {
    _ = tcflush(terminal, TCIFLUSH)
  }

  /// The same, but what is typed is not shown. Keys that make a signal do so.
  package var withoutEcho: TerminalModes {
    var modes = self
    modes.raw.c_lflag &= ~tcflag_t(ECHO)
    return modes
  }

  /// The same, but no key stops the foreground group (VSUSP).
  package var withoutStopKey: TerminalModes {
    var modes = self
    // VSUSP is element 10; 0 stands for no key (_POSIX_VDISABLE).
    modes.raw.c_cc.10 = 0
    return modes
  }

  /// Whether the same keys make signals: a program that has set modes of its own mostly has others.
  package func hasSignalKeys(of other: TerminalModes) -> Bool {
    raw.c_cc.0 == other.raw.c_cc.0 && raw.c_cc.1 == other.raw.c_cc.1 && raw.c_cc.10 == other.raw.c_cc.10
  }

  /// The same, but every byte passes as it is, in both directions: cfmakeraw(3).
  package var passingBytes: TerminalModes {
    var modes = self
    unsafe cfmakeraw(&modes.raw)
    return modes
  }

  /// The same, but what is typed is not shown, and makes no signal.
  package var silent: TerminalModes {
    var modes = self
    modes.raw.c_lflag &= ~tcflag_t(ECHO | ECHONL | ISIG | IEXTEN)
    modes.raw.c_iflag &= ~tcflag_t(IXON)
    return modes
  }

  /// The signal that a byte makes where it is typed; nil: none, or the byte stops the foreground group.
  package func signal(of byte: UInt8) -> Int32? {
    guard byte != 0, raw.c_lflag & tcflag_t(ISIG) != 0 else { return nil }
    // The elements 0 and 1 are VINTR and VQUIT.
    if byte == raw.c_cc.0 { return SIGINT }
    return byte == raw.c_cc.1 ? SIGQUIT : nil
  }

  /// Whether this process may read a terminal and set its modes: it is in the foreground (tcgetpgrp(3)), or the terminal is
  /// not its controlling one.
  package static func isForeground(_ terminal: Int32) -> Bool {
    let group = tcgetpgrp(terminal)
    return group < 0 || group == getpgrp()
  }
}
