import Glibc
import InMemory
import KeyringHarness
import Model
import SecretMemory
import Store
import Synchronization
import Testing

@testable import Service

/// A keychain whose changes another process precedes: a function is called right before the next one of a kind.
private final class PrecededKeychain: KeychainEngine {
  let name = "memory"
  private let base: MemoryKeychain
  let beforeAdd = Mutex<(@Sendable () throws(StoreError) -> Void)?>(nil)
  let beforeRewrite = Mutex<(@Sendable () throws(StoreError) -> Void)?>(nil)

  init(_ base: MemoryKeychain) { self.base = base }

  func items() throws(StoreError) -> [Item] { try base.items() }
  func changes() throws(StoreError) -> ExternalChanges { try base.changes() }
  func secret(of item: ItemID) throws(StoreError) -> SecretBytes { try base.secret(of: item) }

  func add(_ item: Item, secret: borrowing SecretBytes) throws(StoreError) -> Item {
    let first = beforeAdd.withLock { $0.take() }
    try first?()
    return try base.add(item, secret: secret)
  }

  func update(
    _ items: [ItemID], _ body: (inout Item) throws(StoreError) -> Void
  ) throws(StoreError) -> [Item] { try base.update(items, body) }

  func rewrite(
    _ item: ItemID, readingSecret: Bool,
    _ body: (inout Item, inout SecretBytes) throws(StoreError) -> Void
  ) throws(StoreError) -> Item {
    let first = beforeRewrite.withLock { $0.take() }
    try first?()
    return try base.rewrite(item, readingSecret: readingSecret, body)
  }

  func remove(_ items: [ItemID]) throws(StoreError) { try base.remove(items) }
  func synchronize() throws(StoreError) { try base.synchronize() }
  func room() throws(StoreError) -> DiskRoom? { try base.room() }
  func problems() -> [Problem] { base.problems() }
}

/// CreateItem with `replace` while another process changes the keychain: nothing here looks for its changes but the call itself.
@Suite(
  .serialized, .timeLimit(.minutes(1)),
  .enabled(
    if: unsafe access("/usr/bin/secret-tool", X_OK) == 0 && access("/usr/bin/dbus-daemon", X_OK) == 0,
    "needs secret-tool and dbus-daemon"))
struct ReplacingWhileOthersWriteTests {
  private static let identity = ItemIdentity.generic(service: "s", account: "a")

  /// The keychain as the other process has it.
  private let other = MemoryKeychain()
  private let keychain: PrecededKeychain
  private let bus: PrivateBus
  private let folder: TemporaryFolder

  init() throws {
    keychain = PrecededKeychain(MemoryKeychain(sharing: other))
    (bus, folder) = (try PrivateBus(), try TemporaryFolder())
  }

  private func withServer(_ body: () throws -> Void) async throws {
    let feed = ChangeFeed()
    let server = try SecretServiceServer(
      KeychainStore(engine: keychain, feed: feed), feed,
      .init(
        lock: {}, plainPrograms: { [] }, label: CollectionLabel(state: folder.path),
        defaultAlias: DefaultAlias(state: folder.path), runtime: folder.path))
    let obstacle = try await server.start(
      at: bus.address, replacing: false, waits: false, .init(onLoss: { _ in }))
    #expect(obstacle == nil)
    // The items are read.
    _ = try bus.run("secret-tool lookup none none || true")
    do { try body() } catch {
      await server.end()
      throw error
    }
    await server.end()
  }

  private static func add(
    to keychain: MemoryKeychain, _ identity: ItemIdentity = identity,
    _ attributes: [ExactString: [UInt8]] = [:]
  ) throws(StoreError) {
    let time = Timestamp(seconds: 1)
    var item = Item(id: ItemID(rawValue: ""), identity: identity, created: time, modified: time)
    item.attributes = attributes
    let secret: SecretBytes
    do { secret = try SecretBytes(copying: Array("theirs".utf8).span) } catch { throw .outOfMemory }
    _ = try keychain.add(item, secret: secret)
  }

  private func store() throws {
    try bus.run("printf ours | secret-tool store --label=l service s username a application Python")
  }

  private func text(of item: Item) throws -> String {
    let secret = try other.secret(of: item.id)
    return String(decoding: (0..<secret.count).map { secret.span[$0] }, as: UTF8.self)
  }

  private func checkOneItem() throws {
    let items = try other.items()
    #expect(items.map(\.identity) == [Self.identity])
    #expect(try items.map(text(of:)) == ["ours"])
    #expect(try bus.run("secret-tool lookup service s username a") == "ours")
  }

  @Test func itemThatThisProcessHasNotHeardOfIsReplaced() async throws {
    try await withServer {
      try Self.add(to: other)
      try store()
      try checkOneItem()
    }
  }

  @Test func itemWithoutAnIdentityIsReplacedToo() async throws {
    try await withServer {
      let place = ItemIdentity.other(label: "l")
      try Self.add(to: other, place, ["color": Array("blue".utf8)])
      try bus.run("printf ours | secret-tool store --label=l color blue")
      #expect(try other.items().map(\.identity) == [place])
      #expect(try other.items().map(text(of:)) == ["ours"])
      // Another one of this label is another item.
      try bus.run("printf red | secret-tool store --label=l color red")
      #expect(try Set(other.items().map(\.identity)) == [place, .other(label: "l (2)")])
    }
  }

  @Test func itemThatComesBetweenTheLookAndTheChangeIsReplaced() async throws {
    try await withServer {
      keychain.beforeAdd.withLock { before in
        before = { [other] () throws(StoreError) in try Self.add(to: other) }
      }
      try store()
      try checkOneItem()
    }
  }

  @Test func itemThatGoesBeforeItIsReplacedIsAdded() async throws {
    try await withServer {
      try Self.add(to: other)
      keychain.beforeRewrite.withLock { before in
        before = { [other] () throws(StoreError) in try other.remove(try other.items().map(\.id)) }
      }
      try store()
      try checkOneItem()
    }
  }

  /// Another process has made another item of it: that one stays.
  @Test func itemThatBecomesAnotherOneStays() async throws {
    try await withServer {
      try Self.add(to: other)
      keychain.beforeRewrite.withLock { before in
        before = { [other] () throws(StoreError) in
          _ = try other.update(try other.items().map(\.id)) {
            $0.identity = .generic(service: "t", account: "b")
          }
        }
      }
      try store()
      let items = try other.items()
      let found = Dictionary(uniqueKeysWithValues: zip(items.map(\.identity), try items.map(text(of:))))
      #expect(found == [Self.identity: "ours", .generic(service: "t", account: "b"): "theirs"])
    }
  }
}
