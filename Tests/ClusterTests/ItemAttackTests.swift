import Cluster
import ClusterInMemory
import EtcdClient
import Model
import Store
import StoreConformance
import Testing

/// Attacks on items by someone who may write to the cluster, or runs its servers, and has no key of the store.
@Suite(.timeLimit(.minutes(1))) struct ItemAttackTests {
  private struct Prepared {
    let store: TestStore
    let keychain: ClusterKeychain
    let client: MemoryCluster.Client
    let (a, b): (ItemID, ItemID)
    let (oldA, newA, sealedB): (KeyValue, KeyValue, KeyValue)

    /// Two items, of which the first has got another secret.
    init() throws {
      store = try TestStore()
      client = MemoryCluster.Client(store.cluster)
      let keychain = try store.keychain(client)
      self.keychain = keychain
      var ids: [ItemID] = []
      oldA = try store.sealedSecret { ids.append(try keychain.add(KeychainSamples.generic("a"), "old").id) }
      sealedB = try store.sealedSecret {
        ids.append(try keychain.add(KeychainSamples.generic("b"), "two").id)
      }
      (a, b) = (ids[0], ids[1])
      let first = a
      newA = try store.sealedSecret { try keychain.set(first, Array("new".utf8)) }
    }
  }

  @Test func secretsThatAreReplacedDoNotOpen() throws {
    let test = try Prepared()
    defer { test.keychain.close() }
    #expect(try test.keychain.bytes(of: test.a) == Array("new".utf8))
    for forged in [test.oldA.value, test.sealedB.value, [], [UInt8](repeating: 7, count: 92)] {
      test.store.cluster.put(test.newA.key, forged)
      expect(.damaged(what: "")) { _ = try test.keychain.secret(of: test.a) }
    }
    #expect(try test.keychain.bytes(of: test.b) == Array("two".utf8), "the other one is as it was")
  }

  @Test func secretsWithForgedVersionsDoNotOpen() throws {
    let test = try Prepared()
    defer { test.keychain.close() }
    var replayed = test.oldA
    replayed.key = test.newA.key
    var again = replayed
    again.version += 1
    for forged in [replayed, again] {
      test.store.cluster.forge([forged])
      expect(.damaged(what: "")) { _ = try test.keychain.secret(of: test.a) }
    }
    test.store.cluster.forge([], removing: [test.newA.key])
    expect(.damaged(what: "")) { _ = try test.keychain.secret(of: test.a) }
  }

  @Test func itemsThatAreForgedOrPutBackAreRefused() throws {
    let store = try TestStore()
    let client = MemoryCluster.Client(store.cluster)
    let keychain = try store.keychain(client)
    defer { keychain.close() }
    var id = ItemID(rawValue: "")
    let old = try store.entry { id = try keychain.add(KeychainSamples.generic("a"), "s").id }
    let new = try store.entry {
      _ = try keychain.update([id]) { $0.access = [.userPresence] }
    }
    #expect(old.key == new.key)
    let items = try keychain.items()
    // The item without its flag, as it was before.
    for forged in [old.value, new.value, []] {
      store.cluster.put(new.key, forged)
      client.settle()
      expect(.damaged(what: "")) { _ = try keychain.secret(of: id) }
      expect(.damaged(what: "")) { _ = try keychain.items() }
      expect(.readOnly(reason: "")) { try keychain.add(KeychainSamples.generic("c"), "s") }
      guard case .distrusted = keychain.trust else { return #expect(Bool(false), "it is trusted") }
    }
    #expect(items.first?.access == [.userPresence])
    let fresh = try store.keychain()
    defer { fresh.close() }
    expect(.damaged(what: "")) { _ = try fresh.items() }
  }

  @Test func itemsThatAreHiddenAreMissed() throws {
    let store = try TestStore()
    let keychain = try store.keychain()
    defer { keychain.close() }
    let entry = try store.entry { try keychain.add(KeychainSamples.generic("a"), "s") }
    try keychain.add(KeychainSamples.generic("b"), "s")
    store.cluster.forge([], removing: [entry.key])
    let fresh = try store.keychain()
    defer { fresh.close() }
    expect(.damaged(what: "")) { _ = try fresh.items() }
  }

  @Test func nothingThatWasSeenIsTakenBack() throws {
    let store = try TestStore()
    let seen = SeenState()
    let keychain = try store.keychain(seen: seen)
    defer { keychain.close() }
    let id = try keychain.add(KeychainSamples.generic("a"), "old").id
    let before = store.cluster.contents
    try keychain.set(id, Array("new".utf8))
    store.cluster.forge(before)
    expect(.damaged(what: "")) { _ = try keychain.secret(of: id) }
    let again = try store.keychain(seen: SeenState(seen.contents))
    defer { again.close() }
    expect(.damaged(what: "")) { _ = try again.items() }
  }
}
