import Platform
import SecretMemory
package import Store

/// Asks for the vault's passphrase on standard input, which is a terminal: for a command that unlocks the vault for itself.
package struct TypedPassphrase: Authenticator {
  package init() {}

  /// The terminal shows nothing of what is typed while a passphrase is tried, and it is no answer to the next question.
  package func withTries<Value>(_ body: (_ ask: @escaping (Question, Withdrawal) -> Answer) -> Value) -> Value
  {
    SecretInput.askRepeatedly {
      body { question, withdrawal in
        // It is withdrawn also when it is settled: the command goes on then, and may end before this thread has returned.
        withdrawal.whenWithdrawn { HiddenTyping.end() }
        return ask(question, withdrawal)
      }
    }
  }

  package func ask(_ question: Question, _ withdrawal: Withdrawal) -> Answer {
    if question.failures > 0 {
      let left = UnlockController.attempts - question.failures
      StandardError.write("Wrong passphrase; \(left) \(left == 1 ? "try is" : "tries are") left.\n")
    }
    guard let passphrase = try? SecretInput.ask("Passphrase of the vault: ") else { return .refused }
    return passphrase.isEmpty ? .refused : .approved(ItemPassword(passphrase))
  }
}
