import Cluster
import ClusterInMemory
import EtcdClient
import Model
import Store
import StoreConformance
import Testing

/// The earlier states of items of a store in a cluster, as the cluster has them.
@Suite(.timeLimit(.minutes(1))) struct ItemHistoryTests {
  private let store: TestStore
  private let client: MemoryCluster.Client
  private let keychain: ClusterKeychain

  init() throws {
    store = try TestStore()
    client = MemoryCluster.Client(store.cluster)
    keychain = try store.keychain(client)
    keychain.keep(.standard)
  }

  private func other() throws -> ClusterKeychain {
    let other = try store.keychain()
    other.keep(.standard)
    return other
  }

  private func keys(_ part: String) -> Int {
    store.cluster.contents.filter { String(decoding: $0.key, as: UTF8.self).contains(part) }.count
  }

  private func values(_ keychain: ClusterKeychain, _ item: Item) throws -> [String] {
    try keychain.versions(of: item.identity).map {
      String(decoding: try keychain.bytes(of: $0.item.id), as: UTF8.self)
    }
  }

  /// The number of transactions that change something.
  private func transactions(_ body: () throws -> Void) throws -> Int64 {
    let before = try client.read(RangeRequest(KeyRange(key: [0])), interruption: CallInterruption())
    try body()
    let after = try client.read(RangeRequest(KeyRange(key: [0])), interruption: CallInterruption())
    return after.header.revision - before.header.revision
  }

  @Test func secretsStayAsLongAsTheirVersions() throws {
    defer { keychain.close() }
    let item = try keychain.add(KeychainSamples.generic("a"), "0")
    for number in 1...12 { try keychain.set(item.id, Array("\(number)".utf8)) }
    #expect(keys("/v/") == 11 && keys("/k/item/") == 1)
    _ = try keychain.update([item.id]) { $0.attributes["comment"] = [1] }
    #expect(keys("/v/") == 10, "two states have one secret, and the oldest one is gone")
    try keychain.setOtpauth(item.id, "otpauth://totp/a?secret=GEZDGNBVGY3TQOJQ")
    try keychain.remove([item.id])
    #expect(keys("/k/item/") == 1)
    var purged = 0
    let made = try transactions { purged = try keychain.purge(item.identity) }
    #expect(made == 1 && purged == 10, "a purge is one transaction")
    #expect(keys("/v/") == 0 && keys("/k/item/") == 0, "with the secrets")
  }

  @Test func eachChangeIsOneTransaction() throws {
    defer { keychain.close() }
    let item = try keychain.add(KeychainSamples.generic("a"), "one")
    #expect(try transactions { try keychain.set(item.id, Array("two".utf8)) } == 1)
    let version = try #require(try keychain.versions(of: item.identity).last)
    #expect(try transactions { _ = try keychain.restore(version.item.id) } == 1)
    #expect(try transactions { try keychain.remove([item.id]) } == 1)
    let removed = try #require(try keychain.versions(of: item.identity).last)
    #expect(try transactions { _ = try keychain.restore(removed.item.id) } == 1)
    let off = try transactions {
      _ = try keychain.update([item.id]) { $0.attributes[Item.historyAttribute] = Array("0".utf8) }
    }
    #expect(off == 1 && keys("/v/") == 1)
  }

  @Test func theClusterGetsNoNamesAndNoValues() throws {
    defer { keychain.close() }
    let item = try keychain.add(KeychainSamples.generic("service-name", "account-name"), "the first value")
    _ = try keychain.update([item.id]) { $0.attributes["comment-name"] = Array("comment-text".utf8) }
    try keychain.set(item.id, Array("the second value".utf8))
    try keychain.remove([item.id])
    #expect(try values(keychain, item).count == 3)
    for stored in store.cluster.contents {
      let text = String(decoding: stored.key + stored.value, as: UTF8.self)
      for word in ["service-name", "account-name", "comment", "value"] { #expect(!text.contains(word)) }
    }
  }

  /// A change that is stored as a journal gives the same versions to those who read it before and after it is brought in.
  @Test func versionsOfManyItemsAreTheSameBeforeAndAfterTheJournal() throws {
    let reader = try other()
    defer {
      keychain.close()
      reader.close()
    }
    let items = try (0..<130).map { number in
      var item = KeychainSamples.generic("s", ExactString("a\(number)"))
      item.accessibility = .afterFirstUnlock
      return try keychain.add(item, "secret \(number)")
    }
    try keychain.set(items[0].id, Array("new".utf8))
    // The transactions that would bring it into the entries fail.
    client.injectAfterNext(.fails(.unavailable("away")))
    _ = try keychain.update(items.map(\.id)) { $0.accessibility = .whenUnlocked }
    let before = try reader.versions(of: items[0].identity)
    #expect(before.map(\.changes) == [.value, .protection])
    #expect(before.allSatisfy { $0.item.accessibility == .whenUnlocked })
    #expect(try values(reader, items[0]) == ["secret 0", "new"])
    try reader.add(KeychainSamples.generic("other"), "s")
    #expect(keys("/k/item/") == 131, "another client has brought it in")
    #expect(try reader.versions(of: items[0].identity) == before)
    #expect(try values(reader, items[129]) == ["secret 129"])
    try keychain.catchUp()
    client.injectAfterNext(.fails(.unavailable("away")))
    try keychain.remove(items.map(\.id))
    try reader.catchUp()
    #expect(try reader.versions(of: items[0].identity).map(\.changes) == [.value, .protection, .removal])
    #expect(try values(reader, items[0]) == ["secret 0", "new", "new"])
    #expect(try keychain.items().count == 1)
    #expect(try keychain.purgeAll() == 130 * 2 + 1)
    #expect(keys("/v/") == 1 && keys("/k/item/") == 1)
  }

  @Test func aRemovedItemUnderANameThatIsTakenIsRestoredOverTheOther() throws {
    defer { keychain.close() }
    let item = try keychain.add(KeychainSamples.generic("a"), "one")
    try keychain.setOtpauth(item.id, "otpauth://totp/a?secret=GEZDGNBVGY3TQOJQ")
    try keychain.remove([item.id])
    let present = try keychain.add(KeychainSamples.generic("a"), "two")
    let version = try #require(try keychain.versions(of: item.identity).last)
    let restored = try keychain.restore(version.item.id)
    #expect(restored.id == present.id && restored.otpauth != nil)
    #expect(try keychain.bytes(of: present.id) == Array("one".utf8))
    #expect(try values(keychain, item) == ["one", "one", "two"])
    #expect(try keychain.purge(item.identity) == 3)
    #expect(keys("/v/") == 2)
  }

  @Test func whatWasPurgedDoesNotComeBack() throws {
    let seen = SeenState()
    let keychain = try store.keychain(seen: seen)
    keychain.keep(.standard)
    defer { keychain.close() }
    let item = try keychain.add(KeychainSamples.generic("a"), "one")
    try keychain.set(item.id, Array("two".utf8))
    let version = try #require(try keychain.versions(of: item.identity).last)
    let before = store.cluster.contents
    #expect(try keychain.purge(item.identity) == 1)
    // The secret alone: nothing names it.
    store.cluster.forge(before.filter { String(decoding: $0.key, as: UTF8.self).contains("/v/") })
    expect(.notFound) { _ = try keychain.secret(of: version.item.id) }
    #expect(try keychain.bytes(of: item.id) == Array("two".utf8))
    // All of it: behind what was seen.
    store.cluster.forge(before)
    let again = try store.keychain(seen: SeenState(seen.contents))
    defer { again.close() }
    expect(.damaged(what: "")) { _ = try again.versions(of: item.identity) }
  }

  @Test func secretsOfVersionsCantBeSwappedOrHidden() throws {
    defer { keychain.close() }
    let item = try keychain.add(KeychainSamples.generic("a"), "one")
    let second = try store.sealedSecret { try keychain.set(item.id, Array("two".utf8)) }
    let first = try #require(
      store.cluster.contents.first {
        String(decoding: $0.key, as: UTF8.self).contains("/v/") && $0.key != second.key
      })
    let version = try #require(try keychain.versions(of: item.identity).last)
    var swapped = second
    swapped.key = first.key
    store.cluster.forge([swapped])
    expect(.damaged(what: "")) { _ = try keychain.secret(of: version.item.id) }
    store.cluster.forge([], removing: [first.key])
    expect(.damaged(what: "")) { _ = try keychain.secret(of: version.item.id) }
    #expect(try keychain.bytes(of: item.id) == Array("two".utf8))
  }
}
