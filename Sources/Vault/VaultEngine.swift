import Crypto
import GRDB
import Glibc
public import Model
public import SecretMemory
public import Store
import Synchronization

/// The embedded keychain: one SQLite file in which nothing but the number of items and rough sizes shows.
///
/// The format is `Documentation/VAULT.md`'s. Several processes may have one vault open: every change works
/// on what is stored at that moment, in a transaction, and is on the disk when the call returns. Whoever
/// edits or puts back the file is found out (see `problems`); what still opens can be read.
public final class VaultEngine: KeychainEngine {
  /// In bytes.
  public static let largestSecret = 1 << 20
  /// An item's names and attributes together, in bytes.
  public static let largestMetadata = 1 << 20

  public let name = "vault"

  /// Which of the vault's items this engine shows.
  private let part: VaultPart
  /// What a new password of an item's own costs whoever guesses it.
  private let passwordCost: PassphraseCost
  /// The engine's state. `KeychainStore` calls from one place at a time; the lock makes sure of it.
  private let door: Locked<VaultDoor>
  /// What `door` says, for those who must not wait for it.
  private let state = Mutex(KeychainLock.sealed)

  /// Opens the vault in `directory`, or makes one where there is none. It is unlocked at once where its key
  /// file is all it takes.
  ///
  /// Both folders are made where they are missing (0700). `stateDirectory` keeps what belongs to this
  /// device: the anchor by which an older vault is known, and the device key of …ThisDeviceOnly items.
  ///
  /// - Throws: `accessDenied` (others can access a file; a missing or wrong key), `unsupported` (no vault,
  ///   or a newer one), `damaged`, `unreachable` (locked for 8 s), `noSpace`, `outOfMemory`, `system`.
  public init(
    directory: String, stateDirectory: String, part: VaultPart = .items,
    passwordCost: PassphraseCost = .standard
  ) throws(StoreError) {
    self.part = part
    self.passwordCost = passwordCost
    let place = try VaultDirectory(directory, state: stateDirectory)
    door = Locked(VaultDoor(try VaultFile(opening: place)))
    guard try !slots().contains(where: \.takesPassphrase) else { return }
    try unlock(Self.noPassphrase())
  }

  /// Takes the vault as it is now, after it was found older than its anchor or not to add up.
  ///
  /// Items that were deleted meanwhile are back, and missing ones stay missing: ask a person first.
  public func acceptRollback() throws(StoreError) {
    try door.use { door throws(StoreError) in try door.opened().accept() }
  }

  public func items() throws(StoreError) -> [Item] {
    try door.use { door throws(StoreError) in try door.opened().items() }.filter(isShown)
  }

  public func refresh() throws(StoreError) -> [Item]? {
    try door.use { door throws(StoreError) in try door.opened().refresh() }?.filter(isShown)
  }

  private func isShown(_ item: Item) -> Bool { item.identity.isSeal == (part == .seals) }

  public func secret(of item: ItemID) throws(StoreError) -> SecretBytes {
    try door.use { door throws(StoreError) in try door.opened().secret(of: item) }
  }

  public let sealsWithPasswords = true

  public func using(_ password: ItemPassword) throws(StoreError) -> any KeychainEngine {
    VaultWithPassword(vault: self, seal: PasswordSeal(password: password, cost: passwordCost))
  }

  public func prepare(_ password: ItemPassword) throws(StoreError) {
    let seal = PasswordSeal(password: password, cost: passwordCost)
    defer { wipeStack() }
    do { try seal.derive(seal.parameters) } catch { throw StoreError(vault: error, errno: 0) }
  }

  public func add(_ item: Item, secret: borrowing SecretBytes) throws(StoreError) -> Item {
    try door.use { door throws(StoreError) in try door.opened().add(item, secret: secret) }
  }

  public func update(
    _ items: [ItemID], _ body: (inout Item) throws(StoreError) -> Void
  ) throws(StoreError) -> [Item] {
    try door.use { door throws(StoreError) in try door.opened().update(items, nil, body) }
  }

  public func rewrite(
    _ item: ItemID, readingSecret: Bool,
    _ body: (inout Item, inout SecretBytes) throws(StoreError) -> Void
  ) throws(StoreError) -> Item {
    try door.use { door throws(StoreError) in
      try door.opened().rewrite(item, readingSecret: readingSecret, nil, body)
    }
  }

  public func remove(_ items: [ItemID]) throws(StoreError) {
    try door.use { door throws(StoreError) in try door.opened().remove(items) }
  }

  /// Does nothing: every commit is on the disk already (synchronous=FULL).
  public func synchronize() throws(StoreError) {}

  public func room() throws(StoreError) -> DiskRoom? {
    try door.use { door throws(StoreError) in try door.file.directory.diskRoom() }
  }

  public var readOnlyReason: String? {
    door.use { door in door.session?.distrust ?? door.file.directory.readOnlyReason }
  }

  public func problems() -> [Problem] {
    door.use { door in door.session?.problems() ?? [] }
  }
}

extension VaultEngine {
  func sealedSecret(of item: ItemID) throws(StoreError) -> (SealedSecret, SymmetricKey)? {
    try door.use { door throws(StoreError) in try door.opened().sealedSecret(of: item) }
  }

  func withSession<Result>(
    _ body: (Session) throws(StoreError) -> Result
  ) throws(StoreError) -> Result {
    try door.use { door throws(StoreError) in try body(door.opened()) }
  }
}

// MARK: - Locking

extension VaultEngine {
  public var lockState: KeychainLock { state.withLock { $0 } }

  /// What opens the vault now.
  public var key: VaultKey {
    let kinds = ((try? slots()) ?? []).compactMap { KeySlot.Kind(rawValue: $0.kind) }
    if kinds.contains(.passphraseAndKeyFile) { return .passphraseAndKeyFile }
    return kinds.contains(.passphrase) ? .passphrase : .keyFile
  }

  public var needsPassphrase: Bool {
    (try? slots().contains(where: \.takesPassphrase)) ?? false
  }

  public func lock() throws(StoreError) {
    try change { door throws(StoreError) in try door.lock() }
    wipeStack()
  }

  public func unlock(_ passphrase: borrowing SecretBytes) throws(StoreError) {
    let master = try masterKey(passphrase)
    try change { door throws(StoreError) in try door.unlock(master) }
    wipeStack()
  }

  /// Whether this is the vault's passphrase. It takes as long for a wrong one.
  ///
  /// - Throws: `rejected`, `damaged`, `outOfMemory`.
  public func check(_ passphrase: borrowing SecretBytes) throws(StoreError) {
    _ = try masterKey(passphrase)
    wipeStack()
  }

  /// Makes the vault open another way: only its slot is written, no item is sealed anew. A process that is
  /// killed meanwhile leaves it openable the old way or the new one.
  ///
  /// Unlocks the vault. Without a passphrase, items of the class `whenPasscodeSetThisDeviceOnly` are deleted.
  /// - Throws: `rejected` where `present` is not the vault's passphrase, `locked` where it is missing,
  ///   `accessDenied` for a missing key file, `invalidValue` for an empty passphrase, `readOnly`, `noSpace`.
  public func change(
    to key: VaultKey, _ passphrase: borrowing SecretBytes, present: borrowing SecretBytes,
    cost: PassphraseCost = .standard
  ) throws(StoreError) {
    let old = try slots()
    let master = try masterKey(present, old)
    let slot = try newSlot(key, passphrase, cost, master, id: (old.map(\.id).max() ?? 0) + 1)
    try change { door throws(StoreError) in
      try door.unlock(master)
      try door.replaceSlots(old, with: [slot])
    }
    wipeStack()
  }
}

/// Which of its items a vault is opened for.
public enum VaultPart: Sendable {
  case items
  /// Those that keep the keys of what other keychains hold sealed.
  case seals
}

/// What opens a vault.
public enum VaultKey: String, Sendable {
  case keyFile
  case passphrase
  case passphraseAndKeyFile
}

extension VaultEngine {
  private static func noPassphrase() throws(StoreError) -> SecretBytes {
    do { return try SecretBytes() } catch { throw .outOfMemory }
  }

  private func slots() throws(StoreError) -> [KeySlot] {
    try door.use { door throws(StoreError) in try door.file.slots() }
  }

  /// Outside of the lock, because a passphrase takes half a second.
  private func masterKey(
    _ passphrase: borrowing SecretBytes, _ slots: [KeySlot]? = nil
  ) throws(StoreError) -> SymmetricKey {
    let ring = try door.use { door throws(StoreError) in try KeyRing(door.file, passphrase) }
    guard let slots else { return try ring.open(self.slots()) }
    return try ring.open(slots)
  }

  private func newSlot(
    _ key: VaultKey, _ passphrase: borrowing SecretBytes, _ cost: PassphraseCost, _ master: SymmetricKey,
    id: UInt64
  ) throws(StoreError) -> KeySlot {
    let (directory, store) = door.use { ($0.file.directory, $0.file.header.store) }
    do {
      guard key != .keyFile else {
        try directory.makeKeyIfMissing()
        return try KeySlot(id: id, KeyFileSource(bytes: directory.fetchKey()), master: master, store: store)
      }
      var source = PassphraseSource(
        passphrase: try SecretBytes(copying: passphrase),
        keyFile: try key == .passphrase ? nil : directory.fetchKey())
      source.cost = cost
      return try KeySlot(id: id, source, master: master, store: store)
    } catch {
      throw StoreError(vault: error, errno: 0)
    }
  }

  private func change(_ body: (VaultDoor) throws(StoreError) -> Void) throws(StoreError) {
    try door.use { door throws(StoreError) in
      defer { state.withLock { $0 = door.lockState } }
      try body(door)
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
