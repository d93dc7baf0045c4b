import Glibc
import Platform
import Synchronization

/// A dialog that stands in a terminal or a window.
struct OpenDialog {
  let process: pid_t
  let terminal: TerminalState?
}

extension Pinentry {
  /// Ends the dialog that is open in this process, if there is one, and leaves its terminal as it was.
  static func endOpen() {
    guard let dialog = open.withLock({ $0.take() }) else { return }
    // The signal of its own time limit, on which it takes itself off the terminal.
    kill(dialog.process, SIGALRM)
    let ended = exitStatus(of: dialog.process, within: patience)
    if ended == nil { kill(dialog.process, SIGKILL) }
    dialog.terminal?.restore(drawn: ended != 0)
  }

  /// As waitid(2) tells without reaping; nil: it has not ended by then. 0: it has ended by itself.
  private static func exitStatus(of process: pid_t, within seconds: Int) -> Int32? {
    guard let handle = ProcessHandle(process: process) else { return 0 }
    guard handle.waitForEnd(seconds: seconds) else { return nil }
    var information = unsafe siginfo_t()
    guard unsafe waitid(P_PID, id_t(process), &information, WEXITED | WNOWAIT) == 0 else { return 0 }
    return unsafe information.si_code == 1 /* CLD_EXITED */ ? 0 : 1
  }
}
