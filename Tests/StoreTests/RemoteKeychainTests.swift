import Dispatch
import Model
import SecretMemory
import StoreConformance
import Synchronization
import Testing

@testable import Store

/// The store with an engine in another process.
@Suite(.timeLimit(.minutes(1))) struct RemoteKeychainTests {
  let engine = RemoteMemory()
  let store: KeychainStore
  var log: ChangeLog

  init() {
    store = KeychainStore(engine: engine)
    log = ChangeLog(store.feed)
  }

  @Test mutating func newsHaveTheOriginThatTheEngineTells() async throws {
    try store.load()
    let own = try store.add(KeychainSamples.generic("own"), secret: KeychainSamples.secret("1"))
    var other = KeychainSamples.generic("other")
    other.id = ItemID(rawValue: "other")
    engine.tell(ItemNews(other.id, other, origin: .external))
    try store.refresh()
    other.size = 7
    engine.tell(ItemNews(other.id, other, origin: .external))
    engine.tell(ItemNews(own.id, nil, origin: .external))
    try store.refresh()
    try store.refresh()
    #expect(
      await log.next() == [
        Change(.created, .item(own.id, own.identity), origin: .local),
        Change(.created, .item(other.id, other.identity), origin: .external),
        Change(.modified, .item(other.id, other.identity), origin: .external),
        Change(.deleted, .item(own.id, own.identity), origin: .external),
      ])
    #expect(try store.read { $0.count } == 1)
  }

  @Test func whatIsLockedIsRefusedWithoutAskingTheEngine() throws {
    let item = try store.add(KeychainSamples.generic("a"), secret: KeychainSamples.secret("1"))
    engine.isLocked = true
    #expect(throws: StoreError.locked) { try store.checkAccess(to: item.id) }
    engine.isLocked = false
    try store.checkAccess(to: item.id)
  }

  @Test mutating func lockBySomebodyElseIsNews() async throws {
    try store.load()
    engine.isLocked = true
    try store.refresh()
    try store.refresh()
    engine.isLocked = false
    try store.refresh()
    #expect(
      await log.next() == [
        Change(.locked, .keychain, origin: .external), Change(.unlocked, .keychain, origin: .external),
      ])
  }

  /// The last report may be old.
  @Test func lockReachesTheEngineAlsoWhereItIsBelievedToBeLocked() throws {
    try store.load()
    engine.isLocked = true
    try store.lock()
    #expect(engine.locks.load(ordering: .relaxed) == 1)
  }

  @Test func callThatHangsHoldsUpNobodyElse() throws {
    let item = try store.add(KeychainSamples.generic("a"), secret: KeychainSamples.secret("1"))
    let (hangs, isDone) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
    DispatchQueue.global().async { [store] in
      try? store.update([item.id]) { _ throws(StoreError) in
        hangs.signal()
        isDone.wait()
      }
      hangs.signal()
    }
    hangs.wait()
    _ = try store.secret(of: item.id)
    try store.refresh()
    _ = try store.add(KeychainSamples.generic("b"), secret: KeychainSamples.secret("2"))
    #expect(try store.read { $0.count } == 2)
    isDone.signal()
    hangs.wait()
  }
}

/// A keychain in memory that plays one of another process.
final class RemoteMemory: KeychainEngine, RemoteKeychain, LockingKeychain {
  let name = "remote"
  let news = AsyncStream<Void> { $0.finish() }
  private let untold = Mutex<[ItemNews]>([])
  private let stored = Mutex<[ItemID: Item]>([:])
  private let locked = Mutex(false)
  /// The number of its locks.
  let locks = Atomic(0)

  var isLocked: Bool {
    get { locked.withLock { $0 } }
    set { locked.withLock { $0 = newValue } }
  }

  func tell(_ news: ItemNews) {
    stored.withLock { $0[news.id] = news.item }
    untold.withLock { $0.append(news) }
  }

  func takeNews() -> [ItemNews] {
    untold.withLock { untold in
      defer { untold = [] }
      return untold
    }
  }

  var remote: (any RemoteKeychain)? { self }
  var locking: any LockingKeychain { self }

  func lock() {
    isLocked = true
    locks.add(1, ordering: .relaxed)
  }
  func unlock(_ passphrase: borrowing SecretBytes) { isLocked = false }

  var lockState: KeychainLock { isLocked ? .locked : .open }

  var known: [Item] { stored.withLock { Array($0.values) } }

  func known(_ item: ItemID) -> Item? { stored.withLock { $0[item] } }

  func items() throws(StoreError) -> [Item] { stored.withLock { Array($0.values) } }

  func changes() throws(StoreError) -> ExternalChanges { .none }

  func secret(of item: ItemID) throws(StoreError) -> SecretBytes {
    do { return try SecretBytes(count: 1) } catch { throw .outOfMemory }
  }

  func add(_ item: Item, secret: borrowing SecretBytes) throws(StoreError) -> Item {
    var item = item
    item.id = ItemID(rawValue: "remote-\(item.identity.folder)")
    tell(ItemNews(item.id, item, origin: .local))
    return item
  }

  func update(
    _ items: [ItemID], _ body: (inout Item) throws(StoreError) -> Void
  ) throws(StoreError) -> [Item] {
    var changed: [Item] = []
    for id in items {
      guard var item = stored.withLock({ $0[id] }) else { throw .notFound }
      try body(&item)
      tell(ItemNews(id, item, origin: .local))
      changed.append(item)
    }
    return changed
  }

  func rewrite(
    _ item: ItemID, readingSecret: Bool,
    _ body: (inout Item, inout SecretBytes) throws(StoreError) -> Void
  ) throws(StoreError) -> Item {
    var secret = try secret(of: item)
    return try update([item]) { item throws(StoreError) in try body(&item, &secret) }[0]
  }

  func remove(_ items: [ItemID]) throws(StoreError) {
    for item in items { tell(ItemNews(item, nil, origin: .local)) }
  }

  func synchronize() throws(StoreError) {}
  func room() throws(StoreError) -> DiskRoom? { nil }
  func problems() -> [Problem] { [] }
}
