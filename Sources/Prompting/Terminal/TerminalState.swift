import Glibc
import Synchronization

/// The modes of a terminal before a dialog was drawn on it, to be put back whatever ends the dialog.
final class TerminalState: Sendable {
  private let device: String
  private let modes: Mutex<termios>

  /// nil: it is no terminal, or can't be opened.
  init?(_ device: String) {
    // SAFETY: a variadic call without its variable part. O_NOCTTY: it stays the terminal of the session that has it.
    let file = unsafe open(device, O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK)
    guard file >= 0 else { return nil }
    defer { close(file) }
    var modes = termios()
    guard unsafe tcgetattr(file, &modes) == 0 else { return nil }
    self.device = device
    self.modes = Mutex(modes)
  }

  /// Puts the modes back. `drawn`: the dialog could not take itself off the screen, which is cleared then.
  func restore(drawn: Bool) {
    // SAFETY: a variadic call without its variable part.
    let file = unsafe open(device, O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK)
    guard file >= 0 else { return }
    defer { close(file) }
    if drawn { write(Self.leavingDialog, to: file) }
    var modes = modes.withLock { $0 }
    unsafe tcsetattr(file, TCSANOW, &modes)
  }

  /// Ends the alternate screen, shows the cursor, takes colours back, and clears (ECMA-48, xterm).
  private static let leavingDialog = "\u{1B}[?1049l\u{1B}[?25h\u{1B}[0m\u{1B}[H\u{1B}[2J"

  private func write(_ text: String, to file: Int32) {
    let bytes = Array(text.utf8)
    // SAFETY: the buffer says how long it is.
    _ = unsafe bytes.withUnsafeBytes { unsafe Glibc.write(file, $0.baseAddress, $0.count) }
  }
}
