import Crypto
import GRDB
import Model
import SecretMemory
import Store

/// A vault as one process has it: its file, and since the first unlock a session. Used by one thread at a time.
final class VaultDoor {
  let file: VaultFile
  /// nil: never unlocked.
  private(set) var session: Session?
  private(set) var lockState = KeychainLock.sealed

  init(_ file: VaultFile) {
    self.file = file
  }

  /// - Throws: `locked` for a vault that was never unlocked.
  func opened() throws(StoreError) -> Session {
    guard let session else { throw .locked }
    return session
  }

  func unlock(_ master: SymmetricKey) throws(StoreError) {
    if let session {
      try session.unlock(master)
    } else {
      session = try Session(file, master: master)
    }
    lockState = .open
  }

  func lock() throws(StoreError) {
    guard let session else { return }
    lockState = .locked
    try session.lock()
  }
}

extension VaultDoor {
  /// Puts new slots in the place of those that were there when the change began, all or nothing.
  ///
  /// - Throws: `interrupted` where another process has changed them meanwhile.
  func replaceSlots(_ old: [KeySlot], with new: [KeySlot]) throws(StoreError) {
    let session = try opened()
    try file.connection.write { database in
      guard try KeySlot.fetchAll(database) == old else { throw StoreError.interrupted }
      try KeySlot.replaceAll(with: new, database)
    }
    // The log would keep the old slot until it is written over.
    try? file.connection.run { try $0.execute(sql: "PRAGMA wal_checkpoint(TRUNCATE)") }
    if !new.contains(where: \.takesPassphrase) { try session.removePasscodeItems() }
  }
}

extension Session {
  /// Without a passphrase there is no item that needs one: its secret goes, as on Apple's platforms.
  fileprivate func removePasscodeItems() throws(StoreError) {
    let items = try items().filter { $0.accessibility == .whenPasscodeSetThisDeviceOnly }
    guard !items.isEmpty else { return }
    try remove(items.map(\.id))
  }
}
