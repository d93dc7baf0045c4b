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
  /// This device's record in a store of a cluster, whose passphrase is typed instead; nil: there is none.
  private let device: @Sendable () -> [UInt8]?

  /// - Parameters:
  ///   - program: the executable of `keyhole`; as by default, this process executes it too.
  ///   - vault: the folder of the vault.
  ///   - state: the folder of its state.
  ///   - device: the record of this device in the store of a cluster that the items are in, as this process has opened it.
  package init(
    program: String = Self.own, vault: String, state: String,
    device: @escaping @Sendable () -> [UInt8]? = { nil }
  ) {
    (self.program, self.vault, self.state, self.device) = (program, vault, state, device)
  }

  /// The executable of this process.
  package static let own = "/proc/self/exe"

  package func ask(_ question: Question, _ withdrawal: Withdrawal) -> Answer {
    withTries { $0(question, withdrawal) }
  }

  /// One process asks each time: what a person types between two tries is not shown.
  package func withTries<Value>(
    _ body: (_ ask: @escaping (Question, Withdrawal) -> Answer) -> Value
  ) -> Value {
    let helper = PromptHelperProcess(program)
    defer { helper.end() }
    return body { question, withdrawal in
      guard !withdrawal.isWithdrawn else { return .refused }
      guard let question = question.settled() else { return .revoked }
      if let answer = helper.askAgain(within: question.timeout) { return answer }
      // A process that was ended meanwhile has not answered either.
      guard !withdrawal.isWithdrawn else { return .refused }
      var request = AuthenticationRequest(question, vault: vault, state: state)
      request.device = device()
      return helper.ask(request, on: question.approver ?? question.caller, withdrawal)
    }
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
