import Crypto
import GRDB
public import Model
public import SecretMemory
public import Store
import Synchronization
import VaultDatabase
public import VaultRecords

/// The embedded keychain: one SQLite file in which nothing but the number of items and rough sizes shows.
///
/// The format is `Documentation/VAULT.md`'s. Several processes may have one vault open: every change works
/// on what is stored at that moment, in a transaction, and is on the disk when the call returns. A file that
/// was edited or put back is recognised (see `problems`); what still opens can be read.
public final class VaultEngine: KeychainEngine {
  /// In bytes.
  public static let largestSecret = SealedSecret.largestSize
  /// An item's names and attributes together, in bytes.
  public static let largestMetadata = ItemRecord.largestSize

  /// `vault`.
  public let name = "vault"

  /// Which of the vault's items this engine shows.
  let part: VaultPart
  /// The cost of a guess at a new password of an item's own.
  let passwordCost: PassphraseCost
  /// The engine's state. `KeychainStore` calls from one place at a time; the lock makes sure of it.
  let vault: Locked<LockableVault>
  /// The lock's state, for threads that must not wait for `vault`.
  let state = LockState()
  let turns = BatchTurns()
  let historySettings: HistorySettings

  /// Opens the vault in `directory`, or makes one where there is none. It is unlocked at once where its key
  /// file is all it takes.
  ///
  /// Both folders are made where they are missing (0700). `stateDirectory` keeps what belongs to this
  /// device: the anchor by which an older vault is known, and the device key of …ThisDeviceOnly items.
  /// `reading`: as long as not all items were read, `trust` and `problems` say only what was found so far.
  /// `retention`: how much of what items were this process keeps; nil: it adds no versions, and leaves those that are there.
  ///
  /// - Throws: `accessDenied` (others can access a file; a missing or wrong key), `unsupported` (no vault,
  ///   or a newer one), `damaged`, `unreachable` (locked for 8 s), `noSpace`, `outOfMemory`, `system`.
  public convenience init(
    directory: String, stateDirectory: String, part: VaultPart = .items, reading: VaultReading = .allItems,
    passwordCost: PassphraseCost = .standard, retention: HistoryRetention? = nil
  ) throws(StoreError) {
    try self.init(
      VaultDirectory(directory, state: stateDirectory), part, passwordCost, reading, retention: retention)
  }

  init(
    _ directory: VaultDirectory, _ part: VaultPart, _ passwordCost: PassphraseCost,
    _ reading: VaultReading = .allItems, many: UInt64 = VaultReading.many,
    retention: HistoryRetention? = nil
  ) throws(StoreError) {
    historySettings = HistorySettings(retention)
    self.part = part
    self.passwordCost = passwordCost
    vault = Locked(
      LockableVault(try VaultFile(opening: directory), state, reading, many: many, historySettings))
    guard try !slots().contains(where: \.takesPassphrase) else { return }
    try unlock(LockableVault.noPassphrase())
  }

  /// Opens the metadata of every item. Also opens a vault that was put in this one's place.
  public func items() throws(StoreError) -> [Item] {
    try vault.use { vault throws(StoreError) in
      follow(vault)
      return try vault.withSession { session throws(StoreError) in try session.items() }
    }.filter(isShown)
  }

  /// Also opens another vault that has taken this one's path meanwhile: where it takes a passphrase, there are no items
  /// until that was given.
  public func changes() throws(StoreError) -> ExternalChanges {
    try vault.use { vault throws(StoreError) -> ExternalChanges in
      let (isOther, isTouched) = follow(vault)
      if isOther, vault.session == nil { return .everything([]) }
      return try vault.withSession { session throws(StoreError) in try session.changes(isTouched: isTouched) }
    }.mapItems(shown)
  }

  /// Whether another vault has taken the path of the open one, and whether something else than a commit has written to it.
  @discardableResult private func follow(_ vault: LockableVault) -> (isOther: Bool, isTouched: Bool) {
    let before = ObjectIdentifier(vault.file)
    let isTouched = vault.reopenIfReplaced()
    return (ObjectIdentifier(vault.file) != before, isTouched)
  }

  func isShown(_ item: Item) -> Bool {
    item.identity.isSeal == (part == .seals) && !item.identity.isRemoved
  }

  /// Opens the secret with the keys of its class. - Throws: `notFound`, `locked`, `damaged`, `outOfMemory`.
  public func secret(of item: ItemID) throws(StoreError) -> SecretBytes {
    try withSession { session throws(StoreError) in try session.secret(of: item) }
  }

  /// Adds the item in one transaction. - Throws: `exists`, `tooLarge`, `locked`, `readOnly`, `noSpace`.
  public func add(_ item: Item, secret: borrowing SecretBytes) throws(StoreError) -> Item {
    var item = item
    item.otpauth = nil
    return try add(item, secret: secret, otpauth: .nothing())
  }

  /// Adds the item with both secrets in one transaction. - Throws: as `add(_:secret:)`.
  public func add(
    _ item: Item, secret: borrowing SecretBytes, otpauth: borrowing SecretBytes
  ) throws(StoreError) -> Item {
    try withSession { session throws(StoreError) in
      try session.add(item, secret: secret, otpauth: otpauth)
    }
  }

  /// Changes the items' metadata in one transaction. - Throws: as the protocol.
  public func update(
    _ items: [ItemID], _ body: (inout Item) throws(StoreError) -> Void
  ) throws(StoreError) -> [Item] {
    try withSession { session throws(StoreError) in try session.update(items, nil, body) }
  }

  /// Changes metadata and secret in one transaction. - Throws: as the protocol.
  public func rewrite(
    _ item: ItemID, readingSecret: Bool,
    _ body: (inout Item, inout SecretBytes) throws(StoreError) -> Void
  ) throws(StoreError) -> Item {
    try withSession { session throws(StoreError) in
      try session.rewrite(item, readingSecret: readingSecret, nil, body)
    }
  }

  /// Deletes the rows in one transaction and overwrites them (`secure_delete`); with a `retention` the items are kept as
  /// removed ones.
  public func remove(_ items: [ItemID]) throws(StoreError) {
    try withSession { session throws(StoreError) in try session.remove(items) }
  }

  /// Does nothing: every commit is on the disk already (synchronous=FULL).
  public func synchronize() throws(StoreError) {}

  /// Wipes the keys and closes the file, before the process ends. No call may follow.
  public func close() { vault.use { $0.close() } }

  /// statvfs(3) of the vault's folder.
  public func room() throws(StoreError) -> DiskRoom? {
    try vault.use { vault throws(StoreError) in try vault.file.directory.diskRoom() }
  }

  /// The reason of `requireWritable`, also where the file is gone or replaced.
  public var readOnlyReason: String? {
    do throws(StoreError) {
      try requireWritable()
      return nil
    } catch .readOnly(let reason) {
      return reason
    } catch .unreachable(let reason) {
      return reason
    } catch {
      return error.message
    }
  }

  /// Looks at the file, its mode, the disk, and whether the vault is trusted.
  public func requireWritable() throws(StoreError) {
    try vault.use { vault throws(StoreError) in try vault.requireWritable() }
  }

  /// Damaged entries, a file that was put back or edited, modes that let other users in.
  public func problems() -> [Problem] { vault.use { $0.problems() } }
}

/// Which of its items a vault is opened for.
public enum VaultPart: Sendable {
  case items
  /// Those that keep the keys of what other keychains hold sealed.
  case seals
}

extension VaultEngine: EncryptedKeychain {
  /// The vault itself.
  public var encryption: (any EncryptedKeychain)? { self }

  /// By which of a passphrase and the key file the vault is opened.
  public var keyDescription: String {
    let key =
      switch self.key {
      case .keyFile: "by its key file"
      case .passphrase: "by a passphrase alone"
      case .passphraseAndKeyFile: "by its key file and a passphrase"
      }
    let further = furtherSecrets
    return key + (further.contains(.recoveryCode) ? ", or by a recovery code" : "")
      + (further.contains(.credential)
        ? ", or by a systemd credential, with which any program that can read it opens the vault"
        : "")
  }

  /// Items whose entries are damaged, as `problems` names them.
  public var damagedEntries: [String] { vault.use { $0.session?.damaged.map { "item " + $0.text } ?? [] } }
}

extension VaultEngine {
  func sealedSecret(of item: ItemID) throws(StoreError) -> (SealedSecret, SymmetricKey)? {
    try withSession { session throws(StoreError) in try session.sealedSecret(of: item) }
  }

  var directory: VaultDirectory { vault.use { $0.file.directory } }

  /// A second session, as another process has it after it has unlocked the vault: a connection, and copies of the keys.
  ///
  /// - Throws: `locked`; what `requireWritable` throws.
  func openSecondSession() throws(StoreError) -> Session {
    let (directory, opened) = try vault.use { vault throws(StoreError) in
      let session = try vault.opened()
      try vault.requireWritable()
      return (vault.file.directory, OpenedSlot(slot: session.slot, keys: try session.copyMasterKeys()))
    }
    return try Session(VaultFile(replacing: directory), opened, .singleItems, historySettings)
  }

  func withSession<Result: ~Copyable>(
    _ body: (Session) throws(StoreError) -> Result
  ) throws(StoreError) -> Result {
    try vault.use { vault throws(StoreError) in try vault.withSession(body) }
  }
}
