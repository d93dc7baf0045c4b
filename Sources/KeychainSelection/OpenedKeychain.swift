package import Model
package import Store

/// The keychain that a choice leads to, and why it is that one.
package struct OpenedKeychain: Sendable {
  package let engine: (any KeychainEngine)?
  /// For `keyhole status`.
  package let explanation: String
  /// The first choice of `auto`, which ``ChosenKeychain`` is to record when something is stored.
  package var firstChoice: KeychainChoice?

  package init(engine: (any KeychainEngine)?, explanation: String, firstChoice: KeychainChoice? = nil) {
    self.engine = engine
    self.explanation = explanation
    self.firstChoice = firstChoice
  }
}

/// Why a keychain can't be opened.
package struct KeychainFailure: Error {
  /// The service, or the vault's folder.
  package let subject: String
  package let error: StoreError
}
