import Model
import SecretMemory
import Store
import VaultDatabase
import VaultRecords

/// A vault for the calls about items that are sealed with one password besides.
///
/// Derivations of half a second are done before the vault is entered: other calls do not wait for them.
struct VaultWithPassword: KeychainEngine, OtpauthKeychain, VersionedKeychain {
  let vault: VaultEngine
  let seal: PasswordSeal

  var name: String { vault.name }

  func secret(of item: ItemID) throws(StoreError) -> SecretBytes {
    guard let (sealed, classKey) = try vault.sealedSecret(of: item) else { throw .notFound }
    defer { wipeStack() }
    do { return try sealed.open(under: classKey, seal) } catch { throw StoreError(vault: error, errno: 0) }
  }

  func add(_ item: Item, secret: borrowing SecretBytes) throws(StoreError) -> Item {
    var item = item
    item.otpauth = nil
    return try add(item, secret: secret, otpauth: .nothing())
  }

  func add(
    _ item: Item, secret: borrowing SecretBytes, otpauth: borrowing SecretBytes
  ) throws(StoreError) -> Item {
    try derive(seal.parameters)
    return try vault.withSession { session throws(StoreError) in
      try session.add(item, secret: secret, otpauth: otpauth, seal)
    }
  }

  var otpauthURIs: (any OtpauthKeychain)? { self }

  func otpauth(of item: ItemID) throws(StoreError) -> SecretBytes {
    guard let (sealed, classKey) = try vault.sealedOtpauth(of: item) else { throw .notFound }
    defer { wipeStack() }
    do { return try sealed.open(under: classKey, seal) } catch { throw StoreError(vault: error, errno: 0) }
  }

  func rewriteOtpauth(
    of item: ItemID, readingSecret: Bool,
    _ body: (inout FurtherSecret?, inout SecretBytes) throws(StoreError) -> Void
  ) throws(StoreError) -> Item {
    try prepare(item)
    return try vault.withSession { session throws(StoreError) in
      try session.rewriteOtpauth(of: item, readingSecret: readingSecret, seal, body)
    }
  }

  func update(
    _ items: [ItemID], _ body: (inout Item) throws(StoreError) -> Void
  ) throws(StoreError) -> [Item] {
    for item in items { try prepare(item) }
    return try vault.withSession { session throws(StoreError) in try session.update(items, seal, body) }
  }

  func rewrite(
    _ item: ItemID, readingSecret: Bool,
    _ body: (inout Item, inout SecretBytes) throws(StoreError) -> Void
  ) throws(StoreError) -> Item {
    try prepare(item)
    return try vault.withSession { session throws(StoreError) in
      try session.rewrite(item, readingSecret: readingSecret, seal, body)
    }
  }

  func restore(_ version: ItemID) throws(StoreError) -> Item {
    try prepare(version)
    if let item = version.version?.item { try prepare(item) }
    return try vault.withSession { session throws(StoreError) in try session.restore(version, seal) }
  }

  func changePassword(of item: ItemID, to password: ItemPassword) throws(StoreError) {
    let new = PasswordSeal(password: password, cost: seal.cost)
    try prepare(item)
    try vault.prepare(password)
    try vault.withSession { session throws(StoreError) in try session.reseal(item, from: seal, to: new) }
  }

  /// Each of an item's secrets may have been sealed with parameters of its own.
  private func prepare(_ item: ItemID) throws(StoreError) {
    let present = try vault.sealedSecret(of: item)?.0.passwordParameters
    try derive(present ?? seal.parameters)
    guard let further = try vault.sealedOtpauth(of: item)?.0.passwordParameters else { return }
    try derive(further)
  }

  private func derive(_ parameters: [UInt8]) throws(StoreError) {
    defer { wipeStack() }
    do { try seal.derive(parameters) } catch { throw StoreError(vault: error, errno: 0) }
  }
}

// Calls that don't depend on passwords.
extension VaultWithPassword {
  func items() throws(StoreError) -> [Item] { try vault.items() }
  func changes() throws(StoreError) -> ExternalChanges { try vault.changes() }
  func remove(_ items: [ItemID]) throws(StoreError) { try vault.remove(items) }
  func synchronize() throws(StoreError) { try vault.synchronize() }
  func room() throws(StoreError) -> DiskRoom? { try vault.room() }
  func problems() -> [Problem] { vault.problems() }
  var trust: KeychainTrust { vault.trust }
  var readOnlyReason: String? { vault.readOnlyReason }
  func requireWritable() throws(StoreError) { try vault.requireWritable() }
  var locking: any LockingKeychain { vault }
  var passwords: (any PasswordKeychain)? { vault }
  var encryption: (any EncryptedKeychain)? { vault }
}

extension VaultWithPassword {
  var history: (any VersionedKeychain)? { self }
  var retention: HistoryRetention? { vault.retention }
  func keep(_ retention: HistoryRetention) { vault.keep(retention) }
  func versions(of identity: ItemIdentity) throws(StoreError) -> [ItemVersion] {
    try vault.versions(of: identity)
  }
  func version(_ id: ItemID) throws(StoreError) -> ItemVersion { try vault.version(id) }
  func lastVersion(ofRemoved item: ItemID) throws(StoreError) -> ItemVersion? {
    try vault.lastVersion(ofRemoved: item)
  }
  func identitiesWithVersions() throws(StoreError) -> [ItemIdentity] { try vault.identitiesWithVersions() }
  func purge(_ identity: ItemIdentity) throws(StoreError) -> Int { try vault.purge(identity) }
  func purgeAll() throws(StoreError) -> Int { try vault.purgeAll() }
  func prune() throws(StoreError) -> Int { try vault.prune() }
}
