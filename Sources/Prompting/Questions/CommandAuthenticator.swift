import Platform
import PromptHelper
import SecretMemory
package import Store

/// A program of the user's decides (`auth-command=`): for tests, and for machines without a person before them.
///
/// Its arguments are the item's path and the asking program's, then the paths of other items that are asked for
/// together. `KEYHOLE_OPERATION` in its environment is `read`, `write`, `read-write` or `change`, and `unlock` where the vault
/// is locked. `KEYHOLE_STARTS` is the command that `keyhole run` starts with the secret, its program by its path, else empty;
/// `KEYHOLE_FOR` is the program that a credential helper answers, else empty. Exit code 0 approves; 10 approves also what the same process opens in the same way for as long as answers hold, 11 the same
/// program in its session, 12 the same program by a rule that is written; 13 refuses it by such a rule.
/// For an item with an application password, the first line it prints is that; for `unlock` it is the vault's passphrase.
package struct CommandAuthenticator: Authenticator {
  private let program: String

  package init(program: String) {
    self.program = program
  }

  package func ask(_ question: Question, _ withdrawal: Withdrawal) -> Answer {
    guard question.settled() != nil else { return .revoked }
    let operation = question.password == .vault ? "unlock" : question.operation.rawValue
    let (started, helped) = (question.caller.startedCommand?.text ?? "", question.caller.helped?.text ?? "")
    let words =
      [
        "/usr/bin/env", "KEYHOLE_OPERATION=\(operation)", "KEYHOLE_STARTS=\(started)",
        "KEYHOLE_FOR=\(helped)", program,
      ]
      + [question.items[0]]
      + [question.caller.programName] + question.items.dropFirst()
    guard let command = try? Child(words, input: .piped) else {
      return .impossible("\(program) can't be started")
    }
    withdrawal.whenWithdrawn { [process = command.process] in ProcessNumber.send(.kill, toGroup: process) }
    defer {
      withdrawal.whenWithdrawn(nil)
      command.end()
    }
    command.closeInput()
    guard command.waitForEnd(seconds: question.timeout) else { return .timedOut }
    let answer = Self.answer(for: command.wait(), to: question)
    guard case .approved = answer, question.password != .none else { return answer }
    guard let line = try? SecretInput.readLine(descriptor: command.output), !line.isEmpty else {
      return .impossible("\(program) printed no password")
    }
    return .approved(ItemPassword(line))
  }

  /// The answer that an exit code stands for; one that the question does not offer is none.
  private static func answer(for status: Int32, to question: Question) -> Answer {
    switch status {
    case 0: .approved(nil)
    case 10: .approved(nil, scope: .process)
    case 11 where question.offersSession: .approved(nil, scope: .session)
    case 12 where question.offeredRule != nil: .approved(nil, scope: .always)
    case 13 where question.offeredRule != nil: .never
    default: .refused
    }
  }
}
