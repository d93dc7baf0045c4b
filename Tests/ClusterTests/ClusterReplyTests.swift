import Cluster
import ClusterInMemory
import ClusterRecords
import EtcdClient
import Model
import Platform
import Store
import StoreConformance
import Synchronization
import Testing
import VaultRecords

/// Replies, keys and states that no server of etcd or client of Keyhole makes, and what is quiet for long.
@Suite(.timeLimit(.minutes(1))) struct ClusterReplyTests {
  /// Replies without parts, or with keys that were not asked for.
  @Test(arguments: [true, false]) func aMalformedReplyIsAnError(hasOtherKeys: Bool) throws {
    let store = try TestStore()
    let own = try store.suites()
    defer { own.close() }
    _ = try own.create("app")
    try own.set("n", .integer(1), in: "app")
    let client = HookedCluster(store.cluster)
    let session = ClusterSession(
      client, store.paths, try store.keys(), device: .random(), seen: SeenState())
    let suites = ClusterSuites(session, propertyLists: own.propertyLists)
    defer { suites.close() }
    let other = KeyValue(key: [1], value: [1], created: 1, modified: 1, version: 1)
    client.setHook { _, reply in reply.values = hasOtherKeys ? reply.values.map { _ in [other] } : [] }
    expect(.unreachable(reason: "")) { _ = try suites.read("app") }
    client.setHook(nil)
    #expect(try suites.value("n", in: "app") == .integer(1))
  }

  /// A record of an epoch that nothing knows: it concerns its suite alone, and a key that no commit has put none.
  @Test func anUnknownEpochConcernsItsSuiteAlone() throws {
    let store = try TestStore()
    let suites = try store.suites()
    defer { suites.close() }
    _ = try suites.create("app")
    try suites.set("n", .integer(1), in: "app")
    _ = try suites.create("other")
    let junk: [UInt8] = [1, 0xFF, 0xFF, 0xFF, 0xFF] + [UInt8](repeating: 7, count: 60)
    // Beside the entries: it is left out, and nothing is read again.
    let place = try #require(
      store.cluster.contents.first { String(decoding: $0.key, as: UTF8.self).contains("/s/set/") }
    ).key.dropLast(32)
    store.cluster.put(place + ClusterPaths.digits(.random()), junk)
    try suites.set("n", .integer(2), in: "app")
    #expect(try suites.value("n", in: "app") == .integer(2))
    // In the place of a head, for a client that begins.
    let head = try #require(
      store.cluster.contents.last { value in
        let key = String(decoding: value.key, as: UTF8.self)
        return key.contains("/s/head/")
          && !key.hasSuffix(String(decoding: place.suffix(33).prefix(32), as: UTF8.self))
      })
    store.cluster.put(head.key, junk)
    let fresh = try store.suites()
    defer { fresh.close() }
    #expect(try Set(fresh.suites().keys) == ["app", "other"])
    #expect(try fresh.value("n", in: "app") == .integer(2))
    expect(.damaged(what: "")) { _ = try fresh.read("other") }
  }

  /// A keychain that nothing changes, whose last change was compacted: it is followed from what was read, and read once.
  @Test func aQuietKeychainIsFollowedAfterACompaction() throws {
    let store = try TestStore()
    let suites = try store.suites()
    defer { suites.close() }
    _ = try suites.create("app")
    try suites.set("n", .integer(1), in: "app")
    store.cluster.compact(store.cluster.revision)
    let client = HookedCluster(store.cluster)
    let keychain = ClusterKeychain(
      ClusterSession(client, store.paths, try store.keys(), device: .random(), seen: SeenState()))
    defer { keychain.close() }
    #expect(try keychain.items().isEmpty)
    let other = try store.keychain()
    defer { other.close() }
    let sample = try KeychainSamples.secret("s")
    let item = Item(
      id: ItemID(rawValue: ""), identity: .generic(service: "s", account: "me"), created: .now, modified: .now
    )
    _ = try other.add(item, secret: sample)
    let deadline = ContinuousClock.now + .seconds(20)
    var news: [ItemNews] = []
    while news.isEmpty, ContinuousClock.now < deadline {
      if case .items(let some) = try keychain.changes() { news = some }
    }
    #expect(news.count == 1)
    #expect(client.watches == 1, "it began where the cluster still knows what followed")
  }

  /// Two processes of a device: neither removes what the other has seen.
  @Test func whatSeveralProcessesHaveSeenIsKept() throws {
    var one = SeenRecord()
    (one.heads, one.first) = ([[1]: 5, [2]: 7], [9])
    var other = one
    other.heads = [[1]: 4, [2]: 8, [3]: 2, [4]: 6]
    one.keep(other, without: [[4]])
    #expect(one.heads == [[1]: 5, [2]: 8, [3]: 2])
  }

  /// A device deletes nothing by its own clock alone where there are others.
  @Test func theClockOfOthersCounts() {
    let clock = PruningClock()
    let day: Int64 = 86_400
    let isPresent = { abs(clock.time.seconds - Timestamp.now.seconds) < 60 }
    #expect(isPresent())
    clock.noteOthers(true)
    #expect(clock.time.seconds == 0)
    // This clock is a month ahead of the other's.
    clock.note(Timestamp(seconds: Timestamp.now.seconds - 31 * day))
    #expect(clock.time.seconds < Timestamp.now.seconds - 30 * day)
    // The other's is ahead of this one: then this one counts.
    clock.note(Timestamp(seconds: Timestamp.now.seconds + 31 * day))
    #expect(isPresent())
    clock.noteOthers(false)
    #expect(isPresent())
  }

  @Test func commitsHaveToFollowEachOther() {
    let commits = (0..<20).map { _ in Operation.random() }
    var head = CollectionHead()
    head.chain = CommitChain()
    for commit in commits {
      var next = head
      next.note(commit)
      #expect(next.follows(head) && !head.follows(next))
      head = next
    }
    var fork = head
    head.note(.random())
    fork.note(.random())
    var later = fork
    later.note(.random())
    #expect(!later.follows(head) && later.follows(fork))
    // Without the list: the digest alone says so.
    later.operations = [later.operations[0]] + head.operations.prefix(15)
    #expect(!later.follows(head))
  }
}
