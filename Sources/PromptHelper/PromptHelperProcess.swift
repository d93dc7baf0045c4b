import Platform
import Store

/// The process that asks a person, for one question and its further tries.
final class PromptHelperProcess {
  /// How long a withdrawal waits for the terminal, in seconds.
  private static let patience = 1

  private let program: String
  private var helper: Child?
  private var withdrawal: Withdrawal?
  private var terminal: TerminalState?

  init(_ program: String) {
    self.program = program
  }

  /// Starts the process, and has it ask. `asked`: the process on whose terminal the person may be asked.
  func ask(
    _ request: AuthenticationRequest, on asked: Caller.Identity, _ withdrawal: Withdrawal
  ) -> Answer {
    end()
    terminal = asked.terminal.flatMap { TerminalState($0) }
    // An older `keyhole` writes there that it asks for Keyhole only.
    let errors: Child.Errors = program == HelperAuthenticator.own ? .shared : .discarded
    guard let helper = try? Child([program, "authenticate"], input: .piped, errors: errors) else {
      return .impossible("no dialog can be started")
    }
    self.helper = helper
    self.withdrawal = withdrawal
    withdrawal.whenWithdrawn { [process = helper.process] in
      // Not SIGKILL: it first takes its dialog off the terminal. The program that waits goes on when that is done, and so finds the
      // modes of its terminal.
      ProcessNumber.send(.terminate, to: process)
      guard ProcessHandle(process: process)?.waitForEnd(seconds: Self.patience) == false else { return }
      // One that had just been started may not have expected the signal yet.
      ProcessNumber.send(.terminate, to: process)
    }
    request.send(to: helper.input)
    return answer(of: helper, within: request.timeout)
  }

  /// Has the process ask again, as the password was wrong. nil: there is no process, or it is of a version that asks only once.
  func askAgain(within seconds: Int) -> Answer? {
    guard let helper else { return nil }
    AuthenticationReply.sendIsWrong(to: helper.input)
    let answer = answer(of: helper, within: seconds)
    guard case .impossible = answer, helper.waitForEnd(seconds: 0), helper.wait() == 0 else { return answer }
    return nil
  }

  private func answer(of helper: Child, within seconds: Int) -> Answer {
    guard helper.waitForOutput(seconds: seconds) else { return .timedOut }
    // Its input stays open until it has answered: the end of it means that no request waits any more.
    return AuthenticationReply.read(helper.output)
  }

  /// Ends the process. The terminal has its modes then, also where something else has ended the process before.
  func end() {
    withdrawal?.whenWithdrawn(nil)
    withdrawal = nil
    guard let helper = helper.take() else { return }
    helper.terminate()
    if helper.wait() >= 128, let terminal, terminal.isHidden { terminal.restore(drawn: true, hidden: true) }
  }
}
