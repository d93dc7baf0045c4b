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

  /// The engine's state. `KeychainStore` calls from one place at a time; the lock makes sure of it.
  private let session: Locked<Session>

  /// Opens the vault in `directory`, or makes one where there is none.
  ///
  /// Both folders are made where they are missing (0700). `stateDirectory` keeps what belongs to this
  /// device: the anchor by which an older vault is known, and the device key of …ThisDeviceOnly items.
  ///
  /// - Throws: `accessDenied` (others can access a file; a missing or wrong key), `unsupported` (no vault,
  ///   or a newer one), `damaged`, `unreachable` (locked for 8 s), `noSpace`, `outOfMemory`, `system`.
  public init(directory: String, stateDirectory: String) throws(StoreError) {
    let place = try VaultDirectory(directory, state: stateDirectory)
    session = Locked(try Session(opening: place))
  }

  /// Takes the vault as it is now, after it was found older than its anchor or not to add up.
  ///
  /// Items that were deleted meanwhile are back, and missing ones stay missing: ask a person first.
  public func acceptRollback() throws(StoreError) {
    try session.use { session throws(StoreError) in try session.accept() }
  }

  public func items() throws(StoreError) -> [Item] {
    try session.use { session throws(StoreError) in try session.items() }
  }

  public func refresh() throws(StoreError) -> [Item]? {
    try session.use { session throws(StoreError) in try session.refresh() }
  }

  public func secret(of item: ItemID) throws(StoreError) -> SecretBytes {
    try session.use { session throws(StoreError) in try session.secret(of: item) }
  }

  public func add(_ item: Item, secret: borrowing SecretBytes) throws(StoreError) -> Item {
    try session.use { session throws(StoreError) in try session.add(item, secret: secret) }
  }

  public func update(
    _ items: [ItemID], _ body: (inout Item) throws(StoreError) -> Void
  ) throws(StoreError) -> [Item] {
    try session.use { session throws(StoreError) in try session.update(items, body) }
  }

  public func rewrite(
    _ item: ItemID, readingSecret: Bool,
    _ body: (inout Item, inout SecretBytes) throws(StoreError) -> Void
  ) throws(StoreError) -> Item {
    try session.use { session throws(StoreError) in
      try session.rewrite(item, readingSecret: readingSecret, body)
    }
  }

  public func remove(_ items: [ItemID]) throws(StoreError) {
    try session.use { session throws(StoreError) in try session.remove(items) }
  }

  /// Does nothing: every commit is on the disk already (synchronous=FULL).
  public func synchronize() throws(StoreError) {}

  public func room() throws(StoreError) -> DiskRoom? {
    try session.use { session throws(StoreError) in try session.room() }
  }

  public func problems() -> [Problem] {
    session.use { session in session.problems() }
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
