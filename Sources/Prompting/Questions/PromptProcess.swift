import Dispatch
import Platform
import PromptHelper
import Store
import Synchronization

/// The process that asks a person: `keyhole authenticate`, which the process of a mount starts (`HelperAuthenticator`), or a
/// program with the wrappers that needs a vault's passphrase.
package enum PromptProcess {
  /// Reads a request from standard input, asks, and writes the answer to standard output.
  ///
  /// - Returns: whether it was a request that the process which has started this one may make. Where not, nothing was asked.
  package static func run() -> Bool {
    guard let request = readRequest() else { return false }
    var dialog = Dialog(request)
    endWithCaller()
    hideTyping(on: dialog.terminal, for: request.process)
    while true {
      let answer = dialog.answer()
      let mayBeWrong = answer.hasPassword && request.password != .new
      if !mayBeWrong { leaveTerminal() }
      AuthenticationReply.send(answer, to: StandardStream.output.number)
      guard mayBeWrong else { return true }
      // The terminal shows nothing while the password is tried. Where it was right, the caller ends this process.
      furtherTries.wait()
      guard dialog.noteWrongPassword() else {
        leaveTerminal()
        return true
      }
    }
  }

  /// Another program than Keyhole may ask for the passphrase only, and its identity is read from the system.
  private static func readRequest() -> AuthenticationRequest? {
    // Read first: the parent of an orphan is another process.
    let caller = Caller(thread: CurrentProcess.parent).identity()
    let isOfKeyhole = isStartedByKeyhole
    guard let request = AuthenticationRequest(reading: StandardStream.input.number) else { return nil }
    guard !isOfKeyhole else { return request }
    guard caller.process?.number == CurrentProcess.parent, caller.isUnchanged else { return nil }
    return request.ofProgram(caller)
  }

  /// Whether the parent is the same program. A mount's process can't be looked into, and is taken for one then.
  ///
  /// So no other program can have Keyhole's dialog show a text of its own by starting this. (One that closes itself to
  /// others, by prctl(2) PR_SET_DUMPABLE, still can; it could as well start pinentry.)
  private static var isStartedByKeyhole: Bool {
    guard let own = FileID("/proc/self/exe") else { return false }
    do throws(Errno) {
      return try Files.status("/proc/\(CurrentProcess.parent)/exe")?.id == own
    } catch {
      return error == .EACCES
    }
  }

  /// The end of standard input, or SIGTERM, means that the question is withdrawn or settled: the dialog leaves its terminal as it
  /// was, and everything in this group ends. After SIGTERM the caller ends what else is in it.
  private static func endWithCaller() {
    Signals.ignore([.terminate])
    let terminated = DispatchSource.makeSignalSource(
      signal: Signals.Signal.terminate.rawValue, queue: DispatchQueue(label: "keyhole.end"))
    terminated.setEventHandler {
      leaveTerminal()
      CurrentProcess.exit(0)
    }
    terminated.activate()
    termination.withLock { $0 = Termination(source: terminated) }
    DispatchQueue(label: "keyhole.input").async {
      while AuthenticationReply.readIsWrong(StandardStream.input.number) { furtherTries.signal() }
      leaveTerminal()
      CurrentProcess.killGroup()
    }
  }

  /// @unchecked: a source is only kept.
  private struct Termination: @unchecked Sendable {
    let source: any DispatchSourceSignal
  }

  private static let termination = Mutex<Termination?>(nil)

  /// The modes of a dialog come first: they were read when typing was hidden already.
  private static func leaveTerminal() {
    Pinentry.endOpen()
    showTyping()
  }

  /// Each is for one more question, as the password was wrong.
  private static let furtherTries = DispatchSemaphore(value: 0)

  private struct Typing {
    /// nil: the terminal has its modes.
    var terminal: TerminalState?
    /// The process ends, and changes no modes any more.
    var isOver = false
  }

  /// The terminal of the dialog, which shows nothing between two questions either.
  private static let typing = Mutex(Typing())

  /// `process`: the one that asks; it may be stopped, or lose the terminal to another job of its shell.
  private static func hideTyping(on device: String?, for process: Int32) {
    guard let device, let state = TerminalState(device) else { return }
    typing.withLock { typing in
      // The question may be withdrawn before this.
      guard !typing.isOver else { return }
      state.hideTyping()
      typing.terminal = state
    }
    guard process != 0 else { return }
    ForegroundWatch.begin(process) {
      // A shell that reads no command lines leaves the modes as they are.
      typing.withLock { if !$0.isOver { state.restore(drawn: false, hidden: true) } }
    } onReturn: {
      typing.withLock { if !$0.isOver { state.hideTyping() } }
    }
  }

  /// Returns when the terminal has its modes again, on whichever thread.
  private static func showTyping() {
    typing.withLock { typing in
      typing.isOver = true
      typing.terminal.take()?.restore(drawn: false, hidden: true)
    }
  }
}

extension Answer {
  fileprivate var hasPassword: Bool {
    guard case .approved(_?, _) = self else { return false }
    return true
  }
}
