import Model
import Platform
import SecretMemory
package import Store
import Synchronization
import Vault

/// A key file without its vault, as half of a backup leaves it.
package enum OrphanedKey {
  /// nil: there is a vault, or no key file.
  package static func problem(in folder: String) -> Problem? {
    guard AbsentVault.isAbsent(in: folder), Files.hasName(folder + "/vault.key") else { return nil }
    return Problem(
      subject: folder + "/vault.db", reason: "it is missing, but its key file vault.key is there",
      remedy:
        "put back the copy of vault.db that belongs to it; the next secret that is stored begins a new vault")
  }
}

/// The vault of a user who has none: an empty keychain. The first item that is stored makes the vault.
///
/// Commands take it, so that reading makes no folder, no vault and no key file. One that another process has made
/// meanwhile is opened.
final class AbsentVault: KeychainEngine {
  let name = KeychainChoice.vault.rawValue

  private let folder: String
  private let state: String
  private let opened = Mutex<VaultEngine?>(nil)

  private let kept: Mutex<HistoryRetention?>
  /// How much of what items were is kept.
  var retention: HistoryRetention? { kept.withLock { $0 } }

  init(folder: String, state: String, retention: HistoryRetention? = nil) {
    self.folder = folder
    self.state = state
    kept = Mutex(retention)
  }

  /// Whether there is a vault in a folder, or what is left of one.
  static func isAbsent(in folder: String) -> Bool {
    ["vault.db", "vault.db-wal", "vault.db.new"].allSatisfy { name in
      // One that can't be looked at may be there.
      do { return try Files.status(folder + "/" + name, followingLinks: false) == nil } catch { return false }
    }
  }

  /// nil: there still is none.
  private func present() throws(StoreError) -> VaultEngine? {
    if let engine = known { return engine }
    return Self.isAbsent(in: folder) ? nil : try made()
  }

  private var known: VaultEngine? { opened.withLock { $0 } }

  private func made() throws(StoreError) -> VaultEngine {
    try opened.withLock { opened throws(StoreError) in
      if let engine = opened { return engine }
      let engine = try VaultEngine(directory: folder, stateDirectory: state, retention: retention)
      opened = engine
      return engine
    }
  }

  private func required() throws(StoreError) -> VaultEngine {
    guard let engine = try present() else { throw .notFound }
    return engine
  }
}

extension AbsentVault {
  func items() throws(StoreError) -> [Item] { try present()?.items() ?? [] }

  var authenticatesItems: Bool { true }

  var areRulesMissing: Bool { known?.areRulesMissing ?? false }

  func changes() throws(StoreError) -> ExternalChanges {
    if let engine = known { return try engine.changes() }
    return try present().map { (engine) throws(StoreError) in .everything(try engine.items()) } ?? .none
  }

  func secret(of item: ItemID) throws(StoreError) -> SecretBytes { try required().secret(of: item) }

  func add(_ item: Item, secret: borrowing SecretBytes) throws(StoreError) -> Item {
    try made().add(item, secret: secret)
  }

  func update(
    _ items: [ItemID], _ body: (inout Item) throws(StoreError) -> Void
  ) throws(StoreError) -> [Item] {
    items.isEmpty ? [] : try required().update(items, body)
  }

  func rewrite(
    _ item: ItemID, readingSecret: Bool,
    _ body: (inout Item, inout SecretBytes) throws(StoreError) -> Void
  ) throws(StoreError) -> Item {
    try required().rewrite(item, readingSecret: readingSecret, body)
  }

  func remove(_ items: [ItemID]) throws(StoreError) { try present()?.remove(items) }

  func synchronize() throws(StoreError) { try known?.synchronize() }

  func room() throws(StoreError) -> DiskRoom? { try known?.room() }

  func problems() -> [Problem] { known?.problems() ?? [] }

  var readOnlyReason: String? { known?.readOnlyReason }
}

extension AbsentVault {
  var locking: any LockingKeychain {
    if let known { known } else { NotMadeYet() }
  }
  var passwords: (any PasswordKeychain)? { self }
  var otpauthURIs: (any OtpauthKeychain)? { self }
  var batches: (any BatchKeychain)? { self }
  var history: (any VersionedKeychain)? { self }

  func keep(_ retention: HistoryRetention) {
    kept.withLock { $0 = retention }
    known?.keep(retention)
  }
  var encryption: (any EncryptedKeychain)? { known }
}

extension AbsentVault: OtpauthKeychain {
  func otpauth(of item: ItemID) throws(StoreError) -> SecretBytes { try required().otpauth(of: item) }

  func add(
    _ item: Item, secret: borrowing SecretBytes, otpauth: borrowing SecretBytes
  ) throws(StoreError) -> Item {
    try made().add(item, secret: secret, otpauth: otpauth)
  }

  func rewriteOtpauth(
    of item: ItemID, readingSecret: Bool,
    _ body: (inout FurtherSecret?, inout SecretBytes) throws(StoreError) -> Void
  ) throws(StoreError) -> Item {
    try required().rewriteOtpauth(of: item, readingSecret: readingSecret, body)
  }
}

extension AbsentVault: VersionedKeychain {
  func versions(of identity: ItemIdentity) throws(StoreError) -> [ItemVersion] {
    try present()?.versions(of: identity) ?? []
  }

  func version(_ id: ItemID) throws(StoreError) -> ItemVersion { try required().version(id) }

  func lastVersion(ofRemoved item: ItemID) throws(StoreError) -> ItemVersion? {
    try present()?.lastVersion(ofRemoved: item)
  }

  func identitiesWithVersions() throws(StoreError) -> [ItemIdentity] {
    try present()?.identitiesWithVersions() ?? []
  }

  func restore(_ version: ItemID) throws(StoreError) -> Item { try required().restore(version) }
  func purge(_ identity: ItemIdentity) throws(StoreError) -> Int { try present()?.purge(identity) ?? 0 }
  func purgeAll() throws(StoreError) -> Int { try present()?.purgeAll() ?? 0 }
  func prune() throws(StoreError) -> Int { try known?.prune() ?? 0 }
}

extension AbsentVault: BatchKeychain {
  func apply(
    _ changes: [ItemChange], secret: (Int) throws(StoreError) -> SecretBytes
  ) throws(StoreError) -> [Item] {
    try changes.isEmpty ? [] : made().apply(changes, secret: secret)
  }
}

extension AbsentVault: PasswordKeychain {
  func using(_ password: ItemPassword) throws(StoreError) -> any KeychainEngine { try made().using(password) }

  func check(_ password: ItemPassword, of item: ItemID) throws(StoreError) {
    try required().check(password, of: item)
  }

  func changePassword(
    of item: ItemID, from present: ItemPassword, to new: ItemPassword
  ) throws(StoreError) {
    try required().changePassword(of: item, from: present, to: new)
  }

  func prepare(_ password: ItemPassword) throws(StoreError) { try made().prepare(password) }
}

/// The lock of a vault that is not there: to lock it does nothing, and is no error.
private struct NotMadeYet: LockingKeychain {
  var lockState: KeychainLock { .open }
  func lock() {}
  func unlock(_ passphrase: borrowing SecretBytes) {}
}
