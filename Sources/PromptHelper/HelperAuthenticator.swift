import KeychainSelection
import Platform
package import Store

/// Has a person asked by a process of its own: dialogs, PAM and fingerprint readers run other people's code, and
/// this one holds the keys.
package struct HelperAuthenticator: Authenticator {
  /// The executable of that process.
  private let program: String
  /// The folder of the vault, whose passphrase a person may have to type.
  private let vault: String
  private let state: String

  /// - Parameters:
  ///   - program: the executable of `keyhole`; as by default, this process executes it too.
  ///   - vault: the folder of the vault.
  ///   - state: the folder of its state.
  package init(program: String = Self.own, vault: String, state: String) {
    (self.program, self.vault, self.state) = (program, vault, state)
  }

  /// The executable of this process.
  package static let own = "/proc/self/exe"

  package func ask(_ question: Question, _ withdrawal: Withdrawal) -> Answer {
    guard let question = question.settled() else { return .revoked }
    // An older `keyhole` writes there that it asks for Keyhole only.
    let errors: Child.Errors = program == Self.own ? .shared : .discarded
    guard let helper = try? Child([program, "authenticate"], input: .piped, errors: errors) else {
      return .impossible("no dialog can be started")
    }
    // Not SIGKILL: it first takes its dialog off the terminal.
    withdrawal.whenWithdrawn { [process = helper.process] in ProcessNumber.send(.terminate, to: process) }
    defer {
      withdrawal.whenWithdrawn(nil)
      helper.terminate()
    }
    let request = AuthenticationRequest(question, vault: vault, state: state)
    request.send(to: helper.input)
    guard helper.waitForOutput(seconds: question.timeout) else { return .timedOut }
    // Its input stays open until it has answered: the end of it means that no request waits any more.
    return AuthenticationReply.read(helper.output)
  }
}

extension Question {
  /// The part that is still to be asked of a person; nil: other fingers are enrolled than are demanded.
  package func settled() -> Question? {
    guard let demand else { return self }
    guard let left = demand.settled(EnrolledSet.digest) else { return nil }
    var question = self
    question.demand = left
    return question
  }
}
