import Crypto
import GRDB
import Model
import SecretMemory
import Store
import VaultDatabase
import VaultRecords

/// A vault that was unlocked once. Used by one thread at a time.
final class Session {
  let directory: VaultDirectory
  let connection: Connection
  /// For reading all items beside other calls.
  let readerConnection: ReaderConnection
  let keys: VaultKeys
  let classKeys: ClassKeyring
  /// The slot that opened the vault.
  let slot: UInt64
  /// Dropped with what may be another vault's.
  var sealed = SealedSecrets()
  var anchor: Anchor
  /// The manifest when it was last read or written; nil: it is damaged.
  var manifest: Manifest? { didSet { slotsDigest = manifest?.slots ?? slotsDigest } }
  /// The sum of the slots in the last manifest that was not damaged.
  private(set) var slotsDigest: [UInt8]?
  /// The database's `data_version` when the items were last told.
  var toldVersion: UInt64?
  /// The moment of this process's last commit, where no other process had committed anything that was not told.
  var told: WALSnapshot?
  /// Items that were read on opening and not told yet.
  var untold: [Item]?
  /// It takes the place of one with earlier keys: the next call of `changes` reports everything.
  var isNews = false
  /// Why nothing may be written; nil: the vault is as it should be.
  var distrust: String?
  /// The vault was not used on this device before, and was last changed then.
  var firstUse: Timestamp?
  var damaged: [ItemKey] = []
  /// The item that keeps the rules of folders is damaged or was deleted by another program.
  var areRulesMissing = false
  /// An error beside the vault itself.
  var anchorError: StoreError?
  /// Revisions that failed transactions have sealed blobs under.
  var lostRevisions: UInt64 = 0
  /// The moment at which the keys last fitted the vault.
  var checked: WALSnapshot?
  /// Not all items were read yet, so that each one that is used has to be proven.
  var isUnread = false
  /// All rows of a vault of many items, as they were last told; nil: they were not all read, or are not the manifest's.
  var known: KnownRows?
  /// Rows may have been edited of which nothing was read since.
  var isVerificationDue = false
  /// Those that the last commit left; dropped with what may be another vault's.
  var openedVersions: OpenedVersions?
  /// How much is kept of what items were.
  let history: HistorySettings
  /// The generation before the transaction that is under way: states of later ones were never stored.
  var committed: UInt64 = 0
  /// The transaction that is under way deletes versions because none are to be kept any more.
  var isResidueDue = false
  /// From so many items on a change is looked for by the leaves of the hash tree, and not by reading everything.
  let many: UInt64

  var header: VaultHeader { keys.header }

  init(
    _ file: VaultFile, _ opened: OpenedSlot, _ reading: VaultReading = .allItems,
    many: UInt64 = VaultReading.many, _ history: HistorySettings = HistorySettings()
  ) throws(StoreError) {
    self.history = history
    (directory, connection) = (file.directory, file.connection)
    readerConnection = ReaderConnection(file.directory)
    (slot, self.many) = (opened.slot, many)
    do {
      keys = try VaultKeys(opened.keys, file.header)
    } catch {
      throw StoreError(vault: error, errno: 0)
    }
    classKeys = ClassKeyring(keys, directory)
    anchor = Anchor(directory, store: keys.store)
    let items = try load(reading)
    untold = isUnread ? nil : items
    // The slot has just opened the vault's manifest or one of its items: another process has made new keys since.
    if keys.format >= .two, manifest == nil, untold?.isEmpty == true { throw .interrupted }
    directory.restoreReserve()
  }
}

// MARK: - Locking

extension Session {
  /// Drops the keys of the secrets that are not to be read now. Names and attributes stay.
  func lock() throws(StoreError) {
    defer { keys.lock() }
    sealed = SealedSecrets()
    try connection.run { try classKeys.lock($0) }
  }

  /// - Throws: `locked`.
  func copyMasterKeys() throws(StoreError) -> MasterKeys {
    do { return try keys.copyMasterKeys() } catch { throw StoreError(vault: error, errno: 0) }
  }

  /// - Throws: `outOfMemory`.
  func unlock(_ opened: MasterKeys) throws(StoreError) {
    do { try keys.unlock(opened) } catch { throw StoreError(vault: error, errno: 0) }
  }

  /// Whether the keys are still the vault's: another process may have made new ones, with another passphrase.
  ///
  /// It reads nothing as long as no process has committed anything.
  func fitsVault() throws(StoreError) -> Bool {
    let mark = connection.commitMark()
    if let mark, mark == checked { return true }
    guard slotsDigest != nil else { return true }
    try connection.dropCacheIfTouched()
    let fits = try connection.run { try Manifest.fetchIfWhole($0, keys) != nil || !isReplaced($0) }
    if fits { checked = mark }
    return fits
  }

  /// The keys fit what this process has just committed, unless another one has committed since.
  ///
  /// `earlier`: the moment before, inside the transaction; nil: it is not known, and `data_version` is asked, which was
  /// `version` there.
  func noteOwnCommit(after earlier: WALSnapshot?, _ version: UInt64) {
    guard let mark = connection.commitMark() else { return }
    let isLast = earlier.map { mark.isNext(after: $0) } ?? false
    guard isLast || (try? self.version()) == version else { return }
    checked = mark
    openedVersions?.mark = mark
    if version == toldVersion { told = mark }
  }

  /// Whether a slot takes a passphrase, while no process has committed anything since the keys fitted: with another
  /// passphrase there are other keys. nil: the slots have to be read.
  var takesPassphrase: Bool? {
    guard keys.format >= .two, distrust == nil else { return nil }
    guard let mark = connection.commitMark(), mark == checked else { return nil }
    return manifest?.takesPassphrase
  }

  /// A manifest that is damaged has its slots beside it; after new keys, there are others.
  func isReplaced(_ database: Database) throws -> Bool {
    try slotsDigest != Manifest.Digests(database, keys).slots
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

  func secret(of id: ItemID) throws(StoreError) -> SecretBytes {
    if id.version != nil {
      guard let (sealed, classKey) = try sealedSecret(ofVersion: id, part: SecretPlace.main) else {
        throw .notFound
      }
      do { return try sealed.open(under: classKey, nil) } catch { throw StoreError(vault: error, errno: 0) }
    }
    guard let key = ItemKey(id) else { throw .notFound }
    let mark = connection.commitMark()
    if let kept = sealed.secret(key, at: mark), classKeys.isOpen(kept.secret.classKey) {
      do { return try kept.open() } catch { throw StoreError(vault: error, errno: 0) }
    }
    var secret: SecretBytes?
    try read(key) {
      guard let fetched = try secrets($0).fetch(key) else { throw try items($0).missing(key) }
      let valueKey = try fetched.valueKey(under: secrets($0).classKey(of: fetched), nil)
      secret = try fetched.open(valueKey)
      sealed.keep(fetched, valueKey, of: key, at: mark)
    }
    guard let secret else { throw .notFound }
    return secret
  }

  /// A secret as it is sealed, and its class key: to be opened where nothing waits for it. nil: there is no such item.
  func sealedSecret(of id: ItemID) throws(StoreError) -> (SealedSecret, SymmetricKey)? {
    if id.version != nil { return try sealedSecret(ofVersion: id, part: SecretPlace.main) }
    guard let key = ItemKey(id) else { return nil }
    return try read(key) { database in
      guard let fetched = try secrets(database).fetch(key) else {
        let error = try items(database).missing(key)
        if error == .notFound { return nil }
        throw error
      }
      return (fetched, try secrets(database).classKey(of: fetched))
    }
  }

  func items(_ database: Database) -> ItemTable {
    ItemTable(database: database, keys: keys)
  }

  func versions(_ database: Database) -> VersionTable {
    VersionTable(database: database, keys: keys)
  }

  func secrets(_ database: Database, _ password: PasswordSeal? = nil) -> SecretTable {
    SecretTable(database: database, keys: keys, classKeys: classKeys, password: password)
  }
}
