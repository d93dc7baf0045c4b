public import Model
public import SecretMemory
public import Store

extension MemoryKeychain: LockingKeychain {
  /// Itself.
  public var locking: any LockingKeychain { self }

  /// Open until `lock()` or `seal(_:)` is called.
  public var lockState: KeychainLock { shared.use { $0.lock } }

  /// Whether `seal(_:)` has given it a passphrase.
  public var needsPassphrase: Bool { shared.use { $0.passphrase != nil } }

  /// Locks the items, for every engine that shares them.
  public func lock() throws(StoreError) {
    shared.use { $0.lock = .locked }
  }

  /// Compares the passphrase. - Throws: `locked` for an empty one where one is set, `rejected` for a wrong one.
  public func unlock(_ passphrase: borrowing SecretBytes) throws(StoreError) {
    let given = passphrase.unprotected
    try shared.use { state throws(StoreError) in
      guard state.passphrase ?? [] == given else { throw given.isEmpty ? .locked : .rejected }
      state.lock = .open
    }
  }

  /// Gives the keychain a passphrase, and seals it.
  public func seal(_ passphrase: String) {
    shared.use { state in
      state.passphrase = Array(passphrase.utf8)
      state.lock = .sealed
    }
  }
}
