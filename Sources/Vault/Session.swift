import Crypto
import GRDB
import Glibc
import Model
import SecretMemory
import Store

/// A vault that was unlocked once. Used by one thread at a time.
final class Session {
  let directory: VaultDirectory
  let connection: Connection
  let ballast: Ballast
  let header: VaultHeader
  let keys: VaultKeys
  let classKeys: ClassKeyring
  private var sealed = SealedSecrets()
  var anchor: Anchor
  /// The database's `data_version` when the items were last told.
  var toldVersion: UInt64?
  /// Items that were read on opening and not told yet.
  var untold: [Item]?
  /// Why nothing may be written; nil: the vault is as it should be.
  var distrust: String?
  var damaged: [ItemKey] = []
  /// What went wrong beside the vault itself.
  var anchorError: StoreError?

  init(_ file: VaultFile, master: SymmetricKey) throws(StoreError) {
    (directory, connection, ballast, header) = (file.directory, file.connection, file.ballast, file.header)
    do {
      keys = try VaultKeys(master: master, store: header.store)
    } catch {
      throw StoreError(vault: error, errno: 0)
    }
    classKeys = ClassKeyring(keys, directory)
    anchor = try Anchor(directory.anchor(store: keys.store), keys)
    untold = try load()
    ballast.restore()
  }
}

// MARK: - Locking

extension Session {
  /// Drops the keys of the secrets that are not to be read now. Names and attributes stay.
  func lock() throws(StoreError) {
    defer { keys.lock() }
    try connection.run { try classKeys.lock($0) }
  }

  /// - Throws: `outOfMemory`.
  func unlock(_ master: SymmetricKey) throws(StoreError) {
    do { try keys.unlock(master) } catch { throw StoreError(vault: error, errno: 0) }
  }
}

// MARK: - Reading

extension Session {
  func items() throws(StoreError) -> [Item] {
    if let items = untold, try version() == toldVersion {
      untold = nil
      return items
    }
    return try load()
  }

  func refresh() throws(StoreError) -> [Item]? {
    try version() == toldVersion ? nil : try load()
  }

  func secret(of id: ItemID) throws(StoreError) -> SecretBytes {
    guard let key = ItemKey(id) else { throw .notFound }
    let mark = connection.commitMark()
    if let sealed = sealed.secret(key, at: mark), let classKey = classKeys.opened(sealed.classKey) {
      do { return try sealed.open(under: classKey, nil) } catch {
        throw StoreError(vault: error, errno: 0)
      }
    }
    var secret: SecretBytes?
    try connection.run {
      guard let fetched = try secrets($0).fetch(key) else { return }
      secret = try secrets($0).open(fetched)
      sealed.keep(fetched, of: key, at: mark)
    }
    guard let secret else { throw .notFound }
    return secret
  }

  /// A secret as it is sealed, and its class key: to be opened where nobody waits for it. nil: there is no such item.
  func sealedSecret(of id: ItemID) throws(StoreError) -> (SealedSecret, SymmetricKey)? {
    guard let key = ItemKey(id) else { return nil }
    return try connection.run { database in
      try secrets(database).fetch(key).map { ($0, try secrets(database).classKey(of: $0)) }
    }
  }

  func items(_ database: Database) -> ItemTable {
    ItemTable(database: database, keys: keys)
  }

  func secrets(_ database: Database, _ password: PasswordSeal? = nil) -> SecretTable {
    SecretTable(database: database, keys: keys, classKeys: classKeys, password: password)
  }

  private func version() throws(StoreError) -> UInt64 {
    try connection.run { try Connection.dataVersion($0) }
  }

  /// Reads all items and checks that they add up.
  private func load() throws(StoreError) -> [Item] {
    // Before the vault, which others advance first: read later, the anchor could be the newer one.
    try? anchor.reload()
    let (version, census, manifest) = try connection.read { database in
      // The first read fixes what the transaction sees, and so what the version stands for.
      let manifest = try Manifest.fetchIfWhole(database, keys, header)
      let census = try items(database).census(expecting: manifest?.count ?? 0)
      return (try Connection.dataVersion(database), census, manifest)
    }
    toldVersion = version
    untold = nil
    damaged = census.damaged
    judge(census, manifest)
    return census.items
  }
}
