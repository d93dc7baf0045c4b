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
  let keys: VaultKeys
  let classKeys: ClassKeyring
  /// The slot that opened the vault.
  let slot: UInt64
  private var sealed = SealedSecrets()
  var anchor: Anchor
  /// The manifest when it was last read or written; nil: it is damaged.
  var manifest: Manifest? { didSet { slotsDigest = manifest?.slots ?? slotsDigest } }
  /// The sum of the slots in the last manifest that was not damaged.
  private var slotsDigest: [UInt8]?
  /// The database's `data_version` when the items were last told.
  var toldVersion: UInt64?
  /// The moment of this process's last commit, where no other process had committed anything that was not told.
  private var told: WALSnapshot?
  /// Items that were read on opening and not told yet.
  var untold: [Item]?
  /// It takes the place of one with earlier keys: the next refresh reports everything.
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
  private var checked: WALSnapshot?
  /// Not all items were read yet, so that each one that is used has to be proven.
  private(set) var isUnread = false

  var header: VaultHeader { keys.header }

  init(_ file: VaultFile, _ opened: OpenedSlot, _ reading: VaultReading = .allItems) throws(StoreError) {
    (directory, connection) = (file.directory, file.connection)
    slot = opened.slot
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
  private func isReplaced(_ database: Database) throws -> Bool {
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

  /// The items, where they have changed; nil: they have not. `isTouched`: something else than a commit may have written to
  /// the file.
  func refresh(isTouched: Bool = false) throws(StoreError) -> [Item]? {
    if isNews {
      isNews = false
      return try items()
    }
    // First of all: what SQLite keeps of the file may not even be a database.
    if isTouched { try connection.dropCache() }
    let isTold = try isTold()
    if !isTold { connection.noteForeignCommit() }
    return isTouched || !isTold ? try load() : nil
  }

  /// The next refresh reports what the file holds.
  func forgetTold() { (toldVersion, told) = (nil, nil) }

  /// Whether the last items that `refresh` or `items` returned are the present ones, but for this process's own commits.
  private func isTold() throws(StoreError) -> Bool {
    if let told, told == connection.commitMark() { return true }
    return try version() == toldVersion
  }

  /// Reads all from the file again, which something else than a commit has written to.
  func reload() throws(StoreError) -> [Item] {
    try connection.dropCache()
    return try load()
  }

  func secret(of id: ItemID) throws(StoreError) -> SecretBytes {
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

  private func version() throws(StoreError) -> UInt64 {
    try connection.run { try Connection.dataVersion($0) }
  }

  /// The state of the vault in one transaction.
  struct Finding {
    var version: UInt64
    /// nil: the items were not read.
    var scan: ItemTable.ItemScan?
    /// Whether the rows that were read are those that the manifest answers for.
    var isWhole = true
    var manifest: Manifest?
    var digests: Manifest.Digests
  }

  /// Reads all items, or none, and compares what it has read with the manifest and the anchor.
  ///
  /// - Throws: `interrupted` where another process has made new keys since `fitsVault` was asked. After any error the next
  ///   refresh reads all again.
  private func load(_ reading: VaultReading = .allItems) throws(StoreError) -> [Item] {
    // Before the vault, which others advance first: read later, the anchor could be the newer one.
    let anchored = anchor.read()
    // A file that was written over in place may have other keys and secrets at the same moment of the last commit.
    (checked, sealed) = (nil, SealedSecrets())
    forgetTold()
    do throws(StoreError) {
      if connection.noteChecked() { try connection.dropCache() }
      return try load(reading, anchored)
    } catch {
      connection.noteUnchecked()
      throw error
    }
  }

  private func load(_ reading: VaultReading, _ anchored: [UInt8]) throws(StoreError) -> [Item] {
    let found = try connection.read { database in
      // The first read fixes what the transaction sees, and so what the version stands for.
      let manifest = try Manifest.fetchIfWhole(database, keys)
      // Between two transactions another process may have made new keys, under which nothing opens with these.
      if manifest == nil, slotsDigest != nil, try isReplaced(database) { throw StoreError.interrupted }
      if let manifest { try classKeys.follow(manifest.classKeys, database) }
      var found = Finding(
        version: try Connection.dataVersion(database), manifest: manifest,
        digests: try Manifest.Digests(database, keys))
      // Without a manifest no single item could be proven.
      if manifest != nil, reading == .singleItems, keys.format >= .two { return found }
      let scan = try items(database).scan(expecting: manifest?.count ?? 0)
      if let manifest { found.isWhole = try isWhole(scan, manifest, database) }
      found.scan = scan
      return found
    }
    areRulesMissing = areRulesMissing(found)
    untold = nil
    isUnread = found.scan == nil
    toldVersion = found.version
    damaged = found.scan?.damaged ?? []
    judge(found, anchored)
    return found.scan?.items ?? []
  }

  /// Without a manifest it is not known whether there were any.
  private func areRulesMissing(_ found: Finding) -> Bool {
    guard let scan = found.scan, keys.format >= .two, found.manifest?.hasRules ?? true else { return false }
    return !scan.items.contains { $0.identity == .rules }
  }

  private func isWhole(
    _ scan: ItemTable.ItemScan, _ manifest: Manifest, _ database: Database
  ) throws -> Bool {
    guard scan.nameless == 0, scan.count == manifest.count else { return false }
    guard keys.format >= .two else { return scan.sum == manifest.sum }
    return try DigestTable(database: database, keys: keys).isWhole(manifest)
  }
}

/// How much of a vault is read when it is opened.
public enum VaultReading: Sendable {
  /// All items: whatever is wrong with the vault is known then.
  case allItems
  /// None, until a call needs all. Each item that is asked for is proven by itself.
  case singleItems
}
