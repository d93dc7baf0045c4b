import SecretMemory
package import Store

/// Asks for the vault's passphrase on standard input, which is a terminal: for a command that unlocks the vault for itself.
package struct TypedPassphrase: Authenticator {
  package init() {}

  package func ask(_ question: Question, _ withdrawal: Withdrawal) -> Answer {
    if question.failures > 0 {
      let left = UnlockController.attempts - question.failures
      StandardError.write("Wrong passphrase; \(left) \(left == 1 ? "try is" : "tries are") left.\n")
    }
    guard let passphrase = try? SecretInput.ask("Passphrase of the vault: ") else { return .refused }
    return passphrase.isEmpty ? .refused : .approved(ItemPassword(passphrase))
  }
}
