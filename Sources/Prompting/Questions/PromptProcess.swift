import Dispatch
import Glibc
import Platform
import Synchronization

/// The process that asks a person: `keyhole authenticate`, which the process of a mount starts (`HelperAuthenticator`).
package enum PromptProcess {
  /// Reads a request from standard input, asks, and writes the answer to standard output.
  ///
  /// - Returns: whether it was started by Keyhole, with a request. Where not, nothing was asked.
  package static func run() -> Bool {
    guard isStartedByKeyhole, let request = AuthenticationRequest(reading: STDIN_FILENO) else { return false }
    endWithCaller()
    AuthenticationReply.send(Dialog(request).answer(), to: STDOUT_FILENO)
    return true
  }

  /// Whether the parent is the same program. A mount's process can't be looked into, and is taken for one then.
  ///
  /// So no other program can have Keyhole's dialog show a text of its own by starting this. (One that closes itself to
  /// others, by prctl(2) PR_SET_DUMPABLE, still can; it could as well start pinentry.)
  private static var isStartedByKeyhole: Bool {
    var (own, parent) = (stat(), stat())
    guard unsafe stat("/proc/self/exe", &own) == 0 else { return false }
    guard unsafe stat("/proc/\(CurrentProcess.parent)/exe", &parent) == 0 else { return errno == EACCES }
    return own.st_dev == parent.st_dev && own.st_ino == parent.st_ino
  }

  /// The end of standard input, or SIGTERM, means that the question is withdrawn: the dialog leaves its terminal as it
  /// was, and everything in this group ends.
  private static func endWithCaller() {
    _ = signal(SIGTERM, SIG_IGN)
    let terminated = DispatchSource.makeSignalSource(
      signal: SIGTERM, queue: DispatchQueue(label: "keyhole.end"))
    terminated.setEventHandler { end() }
    terminated.activate()
    signals.withLock { $0 = Signals(source: terminated) }
    DispatchQueue(label: "keyhole.input").async {
      var byte: UInt8 = 0
      while unsafe read(STDIN_FILENO, &byte, 1) != 0 {}
      end()
    }
  }

  /// @unchecked: a source is only kept.
  private struct Signals: @unchecked Sendable {
    let source: any DispatchSourceSignal
  }

  private static let signals = Mutex<Signals?>(nil)

  private static func end() {
    Pinentry.endOpen()
    kill(0, SIGKILL)
  }
}
