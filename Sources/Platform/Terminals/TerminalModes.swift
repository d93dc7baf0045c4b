import Glibc

/// The modes of a terminal: termios(3).
package struct TerminalModes: Sendable {
  /// When `set` takes effect.
  package enum Moment: Sendable {
    /// TCSANOW: at once.
    case now
    /// TCSAFLUSH: when all output is out; input that was not read is dropped.
    case flushed
  }

  private var raw = termios()

  /// tcgetattr(3). - Throws: ENOTTY: it is no terminal.
  package init(of terminal: Int32) throws(Errno) {
    var modes = termios()
    try Errno.retrying { unsafe tcgetattr(terminal, &modes) }
    raw = modes
  }

  /// Whether the terminal shows what is typed (ECHO).
  package var echoes: Bool {
    get { raw.c_lflag & tcflag_t(ECHO) != 0 }
    set { if newValue { raw.c_lflag |= tcflag_t(ECHO) } else { raw.c_lflag &= ~tcflag_t(ECHO) } }
  }

  /// tcsetattr(3): gives a terminal these modes.
  package func set(on terminal: Int32, _ moment: Moment) throws(Errno) {
    var modes = raw
    let action = moment == .now ? TCSANOW : TCSAFLUSH
    try Errno.retrying { unsafe tcsetattr(terminal, action, &modes) }
  }
}
