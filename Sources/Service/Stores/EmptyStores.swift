import Model
import SecretMemory
import Store
import Suites
import Synchronization

/// A keychain that has no items and takes none, for scratch files. It can be locked, once.
final class NoItems: KeychainEngine, LockingKeychain {
  private static let refusal = StoreError.readOnly(reason: "only scratch files can be here")

  let name = "none"
  private let isLocked = Atomic(false)

  var locking: any LockingKeychain { self }

  var lockState: KeychainLock { isLocked.load(ordering: .relaxed) ? .locked : .open }

  func lock() { isLocked.store(true, ordering: .relaxed) }

  func unlock(_ passphrase: borrowing SecretBytes) {}

  /// Also what would outlast the lock of a keychain.
  func isAccessible(_ item: Item) -> Bool { lockState == .open }

  func items() -> [Item] { [] }
  func changes() -> ExternalChanges { .none }
  func secret(of item: ItemID) throws(StoreError) -> SecretBytes { throw .notFound }
  func add(_ item: Item, secret: borrowing SecretBytes) throws(StoreError) -> Item { throw Self.refusal }
  func update(_ items: [ItemID], _ body: (inout Item) throws(StoreError) -> Void) -> [Item] { [] }
  func rewrite(
    _ item: ItemID, readingSecret: Bool,
    _ body: (inout Item, inout SecretBytes) throws(StoreError) -> Void
  ) throws(StoreError) -> Item { throw .notFound }
  func remove(_ items: [ItemID]) {}
  func synchronize() {}
  func room() -> DiskRoom? { nil }
  func problems() -> [Problem] { [] }
}

/// A folder of suites that has none and takes none.
struct NoSuites: SuiteEngine {
  let propertyLists: any PropertyListCoding = PropertyLists()

  func suites() -> [ExactString: SuiteStamp] { [:] }
  func stamp(of suite: ExactString) -> SuiteStamp? { nil }
  func read(_ suite: ExactString, since known: SuiteContents?) -> SuiteContents? { nil }
  func update(
    _ suite: ExactString, known: SuiteContents?,
    _ body: (inout SuiteContents) throws(StoreError) -> Void
  ) throws(StoreError) -> SuiteContents { throw .notFound }
  func readOnlyReason(of suite: ExactString) -> String? { nil }
  func create(_ suite: ExactString) throws(StoreError) -> SuiteContents {
    throw .readOnly(reason: "no suite can be here")
  }
  func remove(_ suite: ExactString) throws(StoreError) { throw .notFound }
  func rename(_ suite: ExactString, to name: ExactString) throws(StoreError) { throw .notFound }
  func synchronize(_ suite: ExactString) {}
  /// Of scratch there may be 4 MiB (`FileTree`).
  func room() -> DiskRoom { DiskRoom(blockSize: 4096, blocks: 1024, freeBlocks: 1024, availableBlocks: 1024) }
  func problems() -> [Problem] { [] }
}
