import Cluster
import ClusterInMemory
import EtcdClient
import Model
import Store
import StoreConformance
import Testing

/// Changes of more items than one transaction takes.
@Suite(.timeLimit(.minutes(1))) struct ItemJournalTests {
  private let store: TestStore
  private let client: MemoryCluster.Client

  init() throws {
    store = try TestStore()
    client = MemoryCluster.Client(store.cluster)
  }

  private func fill(_ keychain: ClusterKeychain, _ count: Int) throws -> [ItemID] {
    try (0..<count).map { number in
      try keychain.add(KeychainSamples.generic("s", ExactString("a\(number)")), "secret \(number)").id
    }
  }

  private func keys(_ part: String) -> Int {
    store.cluster.contents.filter { String(decoding: $0.key, as: UTF8.self).contains(part) }.count
  }

  @Test func manyItemsAreRemovedTogether() throws {
    let (keychain, reader) = (try store.keychain(client), try store.keychain())
    defer {
      keychain.close()
      reader.close()
    }
    let ids = try fill(keychain, 200)
    #expect(try reader.items().count == 200)
    // The transactions that would remove the items themselves fail.
    client.injectAfterNext(.fails(.unavailable("away")))
    try keychain.remove(Array(ids.dropFirst()))
    let fresh = try store.keychain()
    defer { fresh.close() }
    for engine in [keychain, reader, fresh] {
      #expect(try engine.items().map(\.id) == [ids[0]])
      expect(.notFound) { _ = try engine.secret(of: ids[1]) }
      #expect(try engine.bytes(of: ids[0]) == Array("secret 0".utf8))
    }
    #expect(keys("/k/item/") > 199)
    // Another client does it before it changes something.
    try fresh.add(KeychainSamples.generic("s", "a1"), "new")
    #expect(keys("/k/item/") == 2)
    #expect(keys("/v/") == 2, "secrets go with their items")
    #expect(try reader.items().count == 2)
  }

  @Test func manyItemsAreChangedTogether() throws {
    let (keychain, reader) = (try store.keychain(client), try store.keychain())
    defer {
      keychain.close()
      reader.close()
    }
    let ids = try fill(keychain, 130)
    #expect(try reader.items().count == 130)
    _ = try reader.changes()
    client.injectAfterNext(.fails(.unavailable("away")))
    let changed = try keychain.update(ids) { item in
      item.label = "new"
      item.accessibility = .afterFirstUnlock
    }
    #expect(changed.count == 130)
    let last = try #require(ids.last)
    for engine in [keychain, reader] {
      #expect(try engine.items().allSatisfy { $0.label == "new" })
      #expect(try engine.bytes(of: last) == Array("secret 129".utf8))
    }
    // All or nothing, also of many.
    #expect(throws: StoreError.self) {
      _ = try keychain.update(ids) { item in
        item.label = "none"
        if item.id == last { item.identity = KeychainSamples.generic("s", "a0").identity }
      }
    }
    #expect(try keychain.items().allSatisfy { $0.label == "new" })
    #expect(keys("/k/item/") == 130, "nothing of the journal is left")
  }

  @Test func whatOthersHaveChangedTogetherIsTold() throws {
    let (keychain, reader) = (try store.keychain(client), try store.keychain())
    defer {
      keychain.close()
      reader.close()
    }
    let ids = try fill(keychain, 150)
    #expect(try reader.items().count == 150)
    client.injectAfterNext(.fails(.unavailable("away")))
    try keychain.remove(ids)
    try reader.catchUp()
    guard case .items(let news) = try reader.changes() else {
      return #expect(Bool(false), "no single items were told")
    }
    #expect(Set(news.map(\.id)).isSuperset(of: ids))
    #expect(news.allSatisfy { $0.item == nil })
  }

  @Test func aPartThatIsHiddenIsMissed() throws {
    let keychain = try store.keychain(client)
    defer { keychain.close() }
    let ids = try fill(keychain, 130)
    client.injectAfterNext(.fails(.unavailable("away")))
    let parts = try store.puts { try keychain.remove(ids) }.filter {
      String(decoding: $0.key, as: UTF8.self).contains("/k/item/")
    }
    let part = try #require(parts.first)
    store.cluster.forge([], removing: [part.key])
    let fresh = try store.keychain()
    defer { fresh.close() }
    expect(.damaged(what: "")) { _ = try fresh.items() }
  }
}
