public import Model

extension KeychainStore {
  /// The question that would open the keychain for an operation that failed with `locked`; nil: no person is to be asked, or
  /// no passphrase opens it.
  ///
  /// `path`: of the wanted file, for the dialog.
  public nonisolated func unlockRequest(
    for path: @autoclosure () -> String, by caller: Caller
  ) -> UnlockRequest? {
    guard let unlocking, engine.locking.needsPassphrase, !engine.locking.isOpenThroughout,
      unlockRefusal == nil
    else { return nil }
    let (identity, options) = (caller.identity(), unlocking.options)
    guard options.asks, !options.browsers.contains(identity) else { return nil }
    let subject = UnlockRequest.Subject(path: path(), caller: identity)
    return UnlockRequest(subject, unlocking) { [weak self] (passphrase) throws(StoreError) in
      guard let self else { throw .locked }
      try unlock(passphrase)
    }
  }

  /// Why no passphrase would open the keychain now; nil: one may, or it is open.
  public nonisolated var unlockRefusal: StoreError? {
    engine.locking.isOpenThroughout ? nil : engine.locking.unlockRefusal
  }

  /// Has a person asked for the passphrase, by the process that serves the keychain where that is another one, and waits.
  ///
  /// - Throws: `locked` where the keychain is still locked; `notPermitted` where no passphrase opens it; `unreachable`.
  public nonisolated func unlockOnDemand(
    for path: @autoclosure () -> String, by caller: Caller
  ) throws(StoreError) {
    if let remote, remote.decidesAccess { return try remote.askToUnlock(for: path()) }
    guard let request = unlockRequest(for: path(), by: caller) else { throw unlockRefusal ?? .locked }
    try request.fetch()
  }

  /// Runs `body`, and once more after a person has unlocked the keychain where it failed with `locked`. It waits for the
  /// person, so it is not for threads that others wait for.
  public nonisolated func unlockingOnDemand<Value: ~Copyable>(
    for path: @autoclosure () -> String, by caller: Caller, _ body: () throws(StoreError) -> Value
  ) throws(StoreError) -> Value {
    do throws(StoreError) { return try body() } catch {
      guard error == .locked else { throw error }
    }
    try unlockOnDemand(for: path(), by: caller)
    return try body()
  }
}
