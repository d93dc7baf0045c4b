import Cluster
import ClusterInMemory
import ClusterRecords
import EtcdClient
import Model
import Store
import StoreConformance
import Suites
import Synchronization
import Testing
import VaultRecords

/// Items, and their versions, while the keys of the store become other ones.
@Suite(.timeLimit(.minutes(1))) struct ItemRotationTests {
  /// A client that does something before one of its commits.
  private final class Interrupted: KeyValueCluster {
    private let client: MemoryCluster.Client
    private let action = Mutex<(key: [UInt8], body: @Sendable () -> Void)?>(nil)
    let deadline = Duration.seconds(5)

    init(_ client: MemoryCluster.Client) { self.client = client }

    func before(storing key: [UInt8], _ body: @escaping @Sendable () -> Void) {
      action.withLock { $0 = (key, body) }
    }

    func read(_ request: RangeRequest) throws(ClusterError) -> RangeReply { try client.read(request) }

    func commit(_ transaction: ClusterTransaction) throws(ClusterError) -> TransactionReply {
      let body = action.withLock { action -> (@Sendable () -> Void)? in
        let isMeant = transaction.operations.contains { operation in
          if case .put(let key, _, _) = operation { key == action?.key } else { false }
        }
        guard isMeant else { return nil }
        defer { action = nil }
        return action?.body
      }
      body?()
      return try client.commit(transaction)
    }

    func watch(
      _ range: KeyRange, from revision: Int64, report: @escaping @Sendable (WatchReport) -> Void
    ) -> any ClusterWatch {
      client.watch(range, from: revision, report: report)
    }
  }

  private let folder: TemporaryFolder
  private let cluster = MemoryCluster()
  private let way: Interrupted
  private let store: ClusterStore
  private let keychain: ClusterKeychain
  private let suites: ClusterSuites

  init() throws {
    folder = try TemporaryFolder()
    way = Interrupted(MemoryCluster.Client(cluster))
    store = try ClusterStore.create(
      way, store: "team", files: folder.files("first"),
      passphrase: KeychainSamples.secret("p"), cost: .least)
    keychain = store.keychain()
    keychain.keep(.standard)
    suites = store.suites(propertyLists: PropertyLists())
  }

  private func close() {
    suites.close()
    keychain.close()
  }

  /// The keychain of another process.
  private func other(_ client: MemoryCluster.Client) throws -> ClusterKeychain {
    let files = folder.files("first")
    let store = try ClusterStore(client, store: "team", files: files)
    try store.unlock(KeychainSamples.secret("p"))
    return store.keychain()
  }

  private func rotate() throws {
    try store.rotate(KeychainSamples.secret("p"), suites: suites, keychain: keychain)
  }

  @Test func aChangeOfManyItemsMeanwhileBringsNoFormerKeysBack() throws {
    defer { close() }
    let ids = try (0..<130).map { number in
      try keychain.add(KeychainSamples.generic("s", ExactString("a\(number)")), "secret \(number)").id
    }
    let client = MemoryCluster.Client(cluster)
    let writer = try other(client)
    defer { writer.close() }
    #expect(try writer.items().count == 130)
    // The transactions that would bring the changes into the items fail, when nothing is sealed again yet.
    let isDone = Mutex(false)
    way.before(storing: store.session.paths.items.head) {
      client.injectAfterNext(.fails(.unavailable("away")))
      let changed = try? writer.update(ids) { $0.label = "new" }
      isDone.withLock { $0 = changed?.count == 130 }
    }
    try rotate()
    #expect(isDone.withLock { $0 })
    let reader = try other(MemoryCluster.Client(cluster))
    defer { reader.close() }
    _ = try reader.update([ids[0]]) { $0.label = "newer" }
    #expect(try reader.items().filter { $0.label == "new" }.count == 129)
    for (number, id) in ids.enumerated() {
      #expect(try reader.bytes(of: id) == Array("secret \(number)".utf8))
    }
  }

  @Test func aRemovedItemKeepsItsLastStateWhenAnEarlierOneIsRestored() throws {
    defer { close() }
    let item = try keychain.add(KeychainSamples.generic("a"), "one")
    try keychain.set(item.id, Array("two".utf8))
    try keychain.remove([item.id])
    try rotate()
    let first = try #require(try keychain.versions(of: item.identity).first)
    _ = try keychain.restore(first.item.id)
    #expect(try keychain.bytes(of: item.id) == Array("one".utf8))
    for engine in [keychain, try other(MemoryCluster.Client(cluster))] {
      defer { engine.close() }
      let secrets = try engine.versions(of: item.identity).map { try engine.bytes(of: $0.item.id) }
      #expect(secrets == [Array("one".utf8), Array("two".utf8)])
    }
  }
}
