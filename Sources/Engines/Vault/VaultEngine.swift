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
public final class VaultEngine: KeychainEngine, LockingKeychain, PasswordKeychain {
  /// In bytes.
  public static let largestSecret = SealedSecret.largestSize
  /// An item's names and attributes together, in bytes.
  public static let largestMetadata = ItemRecord.largestSize

  /// `vault`.
  public let name = "vault"

  /// Which of the vault's items this engine shows.
  private let part: VaultPart
  /// The cost of a guess at a new password of an item's own.
  private let passwordCost: PassphraseCost
  /// The engine's state. `KeychainStore` calls from one place at a time; the lock makes sure of it.
  let door: Locked<VaultDoor>
  /// The lock's state, for threads that must not wait for `door`.
  private let state = LockState()
  let turns = BatchTurns()

  /// Opens the vault in `directory`, or makes one where there is none. It is unlocked at once where its key
  /// file is all it takes.
  ///
  /// Both folders are made where they are missing (0700). `stateDirectory` keeps what belongs to this
  /// device: the anchor by which an older vault is known, and the device key of …ThisDeviceOnly items.
  ///
  /// - Throws: `accessDenied` (others can access a file; a missing or wrong key), `unsupported` (no vault,
  ///   or a newer one), `damaged`, `unreachable` (locked for 8 s), `noSpace`, `outOfMemory`, `system`.
  public convenience init(
    directory: String, stateDirectory: String, part: VaultPart = .items,
    passwordCost: PassphraseCost = .standard
  ) throws(StoreError) {
    try self.init(VaultDirectory(directory, state: stateDirectory), part, passwordCost)
  }

  init(_ directory: VaultDirectory, _ part: VaultPart, _ passwordCost: PassphraseCost) throws(StoreError) {
    self.part = part
    self.passwordCost = passwordCost
    door = Locked(VaultDoor(try VaultFile(opening: directory), state))
    guard try !slots().contains(where: \.takesPassphrase) else { return }
    try unlock(VaultDoor.noPassphrase())
  }

  /// The vault as it is, beside what this device last saw of it.
  ///
  /// - Throws: `locked` for a vault that was never unlocked.
  public func comparison() throws(StoreError) -> VaultComparison {
    try door.use { door throws(StoreError) in try door.opened().comparison() }
  }

  /// Takes the vault as it is now, after it was found older than its anchor or not to add up.
  ///
  /// Items that were deleted meanwhile are back, and missing ones stay missing: ask a person first, and show both
  /// states. Where the key slots are not those that were stored, only the one that opened the vault stays.
  ///
  /// - Returns: the states before.
  /// - Throws: `locked`; `unsupported` for a vault of Keyhole 0.1; `readOnly`, `noSpace`.
  @discardableResult
  public func acceptRollback() throws(StoreError) -> VaultComparison {
    try door.use { door throws(StoreError) in
      let comparison = try door.opened().comparison()
      try door.opened().accept()
      return comparison
    }
  }

  /// Removes the items of other devices only whose secrets are not in this vault, as a restored backup has them.
  ///
  /// - Returns: how many.
  /// - Throws: `locked`, `readOnly` for a vault that is distrusted, `noSpace`.
  @discardableResult
  public func removeItemsLeftOut() throws(StoreError) -> Int {
    try withSession { session throws(StoreError) in
      let items = try session.itemsLeftOut()
      if !items.isEmpty { try session.remove(items) }
      return items.count
    }
  }

  /// The trust by the manifest and this device's anchor, as of the last call that read the file.
  public var trust: KeychainTrust {
    door.use { door in door.session?.trust ?? .trusted }
  }

  /// Opens the metadata of every item. Also opens a vault that was put in this one's place.
  public func items() throws(StoreError) -> [Item] {
    try door.use { door throws(StoreError) in
      follow(door)
      return try door.withSession { session throws(StoreError) in try session.items() }
    }.filter(isShown)
  }

  /// Also opens another vault that has taken this one's path meanwhile: where it takes a passphrase, there are no items
  /// until that was given.
  public func refresh() throws(StoreError) -> [Item]? {
    try door.use { door throws(StoreError) -> [Item]? in
      if follow(door), door.session == nil { return [] }
      return try door.withSession { session throws(StoreError) in try session.refresh() }
    }?.filter(isShown)
  }

  /// True: another vault has taken the path of the open one.
  @discardableResult private func follow(_ door: VaultDoor) -> Bool {
    let before = ObjectIdentifier(door.file)
    door.reopenIfReplaced()
    return ObjectIdentifier(door.file) != before
  }

  private func isShown(_ item: Item) -> Bool { item.identity.isSeal == (part == .seals) }

  /// Opens the secret with the keys of its class. - Throws: `notFound`, `locked`, `damaged`, `outOfMemory`.
  public func secret(of item: ItemID) throws(StoreError) -> SecretBytes {
    try withSession { session throws(StoreError) in try session.secret(of: item) }
  }

  /// The vault itself: scrypt derives a key from the password, which seals the secret's key.
  public var passwords: (any PasswordKeychain)? { self }

  /// The vault for items of this password. The key is derived with the first call that needs it.
  public func using(_ password: ItemPassword) throws(StoreError) -> any KeychainEngine {
    VaultWithPassword(vault: self, seal: PasswordSeal(password: password, cost: passwordCost))
  }

  /// Seals the item's secrets with the new password in one transaction. - Throws: as the protocol.
  public func changePassword(
    of item: ItemID, from present: ItemPassword, to new: ItemPassword
  ) throws(StoreError) {
    let present = PasswordSeal(password: present, cost: passwordCost)
    try VaultWithPassword(vault: self, seal: present).changePassword(of: item, to: new)
  }

  /// Derives the key with scrypt at the cost for new passwords.
  public func prepare(_ password: ItemPassword) throws(StoreError) {
    let seal = PasswordSeal(password: password, cost: passwordCost)
    defer { wipeStack() }
    do { try seal.derive(seal.parameters) } catch { throw StoreError(vault: error, errno: 0) }
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

  /// Deletes the rows in one transaction and overwrites them (`secure_delete`).
  public func remove(_ items: [ItemID]) throws(StoreError) {
    try withSession { session throws(StoreError) in try session.remove(items) }
  }

  /// Does nothing: every commit is on the disk already (synchronous=FULL).
  public func synchronize() throws(StoreError) {}

  /// statvfs(3) of the vault's folder.
  public func room() throws(StoreError) -> DiskRoom? {
    try door.use { door throws(StoreError) in try door.file.directory.diskRoom() }
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
    try door.use { door throws(StoreError) in try door.requireWritable() }
  }

  /// Damaged entries, a file that was put back or edited, and unsafe modes.
  public func problems() -> [Problem] { door.use { $0.problems() } }

}

extension VaultEngine: EncryptedKeychain {
  /// The vault itself.
  public var encryption: (any EncryptedKeychain)? { self }

  /// By which of a passphrase and the key file the vault is opened.
  public var keyDescription: String {
    switch key {
    case .keyFile: "by its key file"
    case .passphrase: "by a passphrase alone"
    case .passphraseAndKeyFile: "by its key file and a passphrase"
    }
  }

  /// Items whose entries are damaged, as `problems` names them.
  public var damagedEntries: [String] { door.use { $0.session?.damaged.map { "item " + $0.text } ?? [] } }
}

extension VaultEngine {
  func sealedSecret(of item: ItemID) throws(StoreError) -> (SealedSecret, SymmetricKey)? {
    try withSession { session throws(StoreError) in try session.sealedSecret(of: item) }
  }

  var directory: VaultDirectory { door.use { $0.file.directory } }

  /// A second session, as another process has it after it has unlocked the vault: a connection, and copies of the keys.
  ///
  /// - Throws: `locked`; what `requireWritable` throws.
  func openSecondSession() throws(StoreError) -> Session {
    let (directory, opened) = try door.use { door throws(StoreError) in
      let session = try door.opened()
      try door.requireWritable()
      return (door.file.directory, OpenedSlot(slot: session.slot, keys: try session.copyMasterKeys()))
    }
    return try Session(VaultFile(replacing: directory), opened)
  }

  func withSession<Result: ~Copyable>(
    _ body: (Session) throws(StoreError) -> Result
  ) throws(StoreError) -> Result {
    try door.use { door throws(StoreError) in try door.withSession(body) }
  }
}

// MARK: - Locking

extension VaultEngine {
  /// The vault itself.
  public var locking: any LockingKeychain { self }

  /// The state of the keys in this process; reading it takes no lock of the engine.
  public var lockState: KeychainLock { state.value }

  /// The kind of key that opens the vault now.
  public var key: VaultKey {
    let kinds = ((try? slots()) ?? []).compactMap { KeySlot.Kind(rawValue: $0.kind) }
    if kinds.contains(.passphraseAndKeyFile) { return .passphraseAndKeyFile }
    return kinds.contains(.passphrase) ? .passphrase : .keyFile
  }

  /// Whether a key slot takes a passphrase; reads the slots from the file.
  public var needsPassphrase: Bool {
    (try? slots().contains(where: \.takesPassphrase)) ?? false
  }

  /// Wipes the keys that a lock takes, and ends batches that are under way.
  public func lock() throws(StoreError) {
    defer { wipeStack() }
    // Also where the vault can't be read to keep what outlasts the lock.
    defer { turns.end() }
    try door.use { door throws(StoreError) in try door.lock() }
  }

  /// Derives the slot's key (scrypt, some tenths of a second), and opens the class keys with it.
  public func unlock(_ passphrase: borrowing SecretBytes) throws(StoreError) {
    let opened = try open(slots(), passphrase)
    try door.use { door throws(StoreError) in try door.unlock(door.file.fitting(opened)) }
    wipeStack()
  }

  /// Whether this is the vault's passphrase. It takes as long for a wrong one.
  ///
  /// - Throws: `rejected`, `damaged`, `outOfMemory`.
  public func check(_ passphrase: borrowing SecretBytes) throws(StoreError) {
    let opened = try open(slots(), passphrase)
    _ = try door.use { door throws(StoreError) in try door.file.fitting(opened) }
    wipeStack()
  }

  /// Makes the vault open another way, with a new master key and new class keys: every row is sealed again, in one
  /// transaction. A process that is killed meanwhile leaves it openable the old way or the new one.
  ///
  /// An earlier copy of the vault opens with its earlier key, and that key opens nothing of this vault.
  /// Unlocks the vault. Without a passphrase, items of the class `whenPasscodeSetThisDeviceOnly` are deleted.
  /// - Throws: `rejected` where `present` is not the vault's passphrase, `locked` where it is missing,
  ///   `accessDenied` for a missing key file, `invalidValue` for an empty passphrase, `readOnly` (distrusted, or of
  ///   Keyhole 0.1), `noSpace`.
  @discardableResult
  public func change(
    to key: VaultKey, _ passphrase: borrowing SecretBytes, present: borrowing SecretBytes,
    cost: PassphraseCost = .standard
  ) throws(StoreError) -> RekeyingReport {
    let old = try slots()
    let opened = try open(old, present)
    let new = MasterKeys.random(withPasscode: key != .keyFile)
    let slot = try newSlot(key, passphrase, cost, new, id: (old.map(\.id).max() ?? 0) + 1)
    defer { wipeStack() }
    return try door.use { door throws(StoreError) in
      try door.unlock(door.file.fitting(opened))
      return RekeyingReport(try door.rekey(old, to: new, slot))
    }
  }
}

/// The result of a change of the vault's keys.
public struct RekeyingReport: Hashable, Sendable {
  /// Items that have new keys.
  public let items: Int
  /// Items that did not open, and stay as damaged as they were.
  public let damaged: Int
  /// Secrets that only other devices can open.
  public let ofOtherDevices: Int
  /// Items of the class `whenPasscodeSetThisDeviceOnly`, which were deleted with the passphrase.
  public let deleted: Int

  init(_ summary: RewritingSummary) {
    (items, damaged, ofOtherDevices, deleted) = (
      summary.items, summary.damaged, summary.carried, summary.deleted
    )
  }
}

/// Which of its items a vault is opened for.
public enum VaultPart: Sendable {
  case items
  /// Those that keep the keys of what other keychains hold sealed.
  case seals
}

/// The kind of key that opens a vault.
public enum VaultKey: String, Sendable {
  case keyFile
  case passphrase
  case passphraseAndKeyFile
}

extension VaultEngine {
  private func slots() throws(StoreError) -> [KeySlot] {
    try door.use { door throws(StoreError) in try door.file.slots() }
  }

  /// Outside of the lock, because a passphrase takes half a second.
  private func open(
    _ slots: [KeySlot], _ passphrase: borrowing SecretBytes
  ) throws(StoreError) -> [OpenedSlot] {
    try door.use { door throws(StoreError) in try SlotOpener(door.file, passphrase) }.open(slots)
  }

  private func newSlot(
    _ key: VaultKey, _ passphrase: borrowing SecretBytes, _ cost: PassphraseCost, _ keys: MasterKeys,
    id: UInt64
  ) throws(StoreError) -> KeySlot {
    let (directory, header) = door.use { ($0.file.directory, $0.file.header) }
    do {
      guard key != .keyFile else {
        try directory.makeKeyIfMissing()
        return try KeySlot(id: id, KeyFileSource(bytes: directory.fetchKey()), keys, header)
      }
      var source = PassphraseSource(
        passphrase: try SecretBytes(copying: passphrase),
        keyFile: try key == .passphrase ? nil : directory.fetchKey())
      source.cost = cost
      return try KeySlot(id: id, source, keys, header)
    } catch {
      throw StoreError(vault: error, errno: 0)
    }
  }
}

/// A value that one thread uses at a time.
///
/// A `Mutex` would ask that what its body captures can leave the caller's isolation; `update`'s body can't.
final class Locked<Value> {
  private let value: Value
  private let mutex = Mutex(())

  init(_ value: Value) {
    self.value = value
  }

  func use<Result: ~Copyable, Failure: Error>(
    _ body: (Value) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    mutex._unsafeLock()
    defer { mutex._unsafeUnlock() }
    return try body(value)
  }
}

// `value` is only ever used while `mutex` is held.
extension Locked: @unchecked Sendable {}
