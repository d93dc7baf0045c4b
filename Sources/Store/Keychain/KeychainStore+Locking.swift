public import Model
public import SecretMemory
import Synchronization

extension KeychainStore {
  /// Drops what opens the secrets; a caller that holds some has to drop them too.
  public nonisolated func lock() throws(StoreError) {
    unlocking?.didLock()
    guard engine.locking.lockState == .open else {
      // A vault that can't be opened now may open by itself later, and has to be locked then; of a keychain in another
      // process the last report may be old.
      guard engine.locking.lockState == .sealed || mayBlock else { return }
      controller?.lock()
      return try engine.locking.lock()
    }
    controller?.lock()
    knownLock.withLock { $0 = nil }
    defer { knownLock.withLock { $0 = engine.locking.lockState } }
    try engine.locking.lock()
    feed.publish([Change(.locked, .keychain, origin: .local)])
  }

  /// Unlocks the keychain, and reads what changed meanwhile.
  ///
  /// - Throws: `rejected`, `locked` where a passphrase is missing, `accessDenied`, `damaged`, `outOfMemory`.
  public nonisolated func unlock(_ passphrase: borrowing SecretBytes) throws(StoreError) {
    // Not inside the actor: it takes long, and a caller of an item that is not locked must not wait for it.
    noteUse()
    knownLock.withLock { $0 = nil }
    defer { knownLock.withLock { $0 = engine.locking.lockState } }
    try engine.locking.unlock(passphrase)
    try beginLoading()
    try refresh()
    feed.publish([Change(.unlocked, .keychain, origin: .local)])
    unlocking?.didUnlock()
  }
}
