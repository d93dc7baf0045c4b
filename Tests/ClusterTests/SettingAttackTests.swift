import Cluster
import ClusterInMemory
import EtcdClient
import Model
import Store
import StoreConformance
import Synchronization
import Testing

/// Attacks on settings by someone who may write to the cluster, or runs its servers, and has no key of the store.
@Suite(.timeLimit(.minutes(1))) struct SettingAttackTests {
  /// An edit of the cluster's contents.
  struct Attack: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let run: @Sendable (TestStore, _ first: KeyValue, _ second: KeyValue, _ old: KeyValue) -> Void

    init(_ name: String, _ run: @escaping @Sendable (TestStore, KeyValue, KeyValue, KeyValue) -> Void) {
      (testDescription, self.run) = (name, run)
    }
  }

  /// `etcdctl put` and `etcdctl del`: watches report them.
  static let edits: [Attack] = [
    Attack("forged") { store, first, _, _ in store.cluster.put(first.key, [UInt8](repeating: 1, count: 80)) },
    Attack("empty") { store, first, _, _ in store.cluster.put(first.key, []) },
    Attack("the same value put again") { store, first, _, _ in store.cluster.put(first.key, first.value) },
    Attack("replayed") { store, first, _, old in store.cluster.put(first.key, old.value) },
    Attack("swapped") { store, first, second, _ in store.cluster.put(first.key, second.value) },
    Attack("deleted") { store, first, _, _ in store.cluster.delete(first.key) },
    Attack("head deleted") { store, first, _, _ in
      for value in store.cluster.contents where value.key.isHead(of: first) {
        store.cluster.delete(value.key)
      }
    },
    Attack("head forged") { store, first, _, _ in
      for value in store.cluster.contents where value.key.isHead(of: first) {
        store.cluster.put(value.key, value.value)
      }
    },
  ]

  /// Servers that answer what they like: no watch reports it.
  static let forgeries: [Attack] = [
    Attack("replayed with its version") { store, _, _, old in store.cluster.forge([old]) },
    Attack("replayed under the present version") { store, first, _, old in
      var forged = old
      (forged.version, forged.modified) = (first.version, first.modified)
      store.cluster.forge([forged])
    },
    Attack("hidden") { store, first, _, _ in store.cluster.forge([], removing: [first.key]) },
    Attack("swapped under the other's key") { store, first, second, _ in
      var forged = second
      forged.key = first.key
      store.cluster.forge([forged])
    },
  ]

  /// Keys that no commit has put: they are in no sum.
  static let strays: [Attack] = [
    Attack("doubled") { store, first, _, _ in
      store.cluster.put(first.key.dropLast() + [first.key.last == 0x30 ? 0x31 : 0x30], first.value)
    },
    Attack("no id") { store, first, _, _ in
      store.cluster.put(Array(first.key.dropLast(3)) + Array("zz".utf8), first.value)
    },
    Attack("a suite that is none") { store, _, _, _ in
      store.cluster.put(Array("/keyhole/1/team/s/name/zz".utf8), Array("junk".utf8))
      store.cluster.put(Array("/keyhole/1/team/s/name/".utf8) + [UInt8](repeating: 0x61, count: 32), [1])
    },
    Attack("empty, and deleted again") { store, first, _, _ in
      let key = Array(first.key.dropLast()) + [first.key.last == 0x30 ? 0x31 : 0x30]
      store.cluster.put(key, [])
      store.cluster.delete(key)
    },
  ]

  @Test(arguments: strays)
  func straysStopNobody(_ attack: Attack) throws {
    let store = try TestStore()
    let client = MemoryCluster.Client(store.cluster)
    let (writer, follower) = (try store.suites(), try store.suites(client))
    defer {
      writer.close()
      follower.close()
    }
    let (first, second) = try store.makeSuite(writer)
    #expect(try follower.value("first", in: "app") == .string("one"))
    attack.run(store, first, second, first)
    // A change that follows is reported, so the watch has gone on behind the key.
    try writer.set("third", .bool(true), in: "app")
    client.settle()
    #expect(try follower.value("third", in: "app") == .bool(true))
    #expect(follower.problems().isEmpty && writer.problems().isEmpty)
    let fresh = try store.suites()
    defer { fresh.close() }
    #expect(try fresh.suiteNames() == ["app"])
    #expect(try fresh.value("first", in: "app") == .string("one"))
    try fresh.set("first", .string("new"), in: "app")
    client.settle()
    #expect(try follower.value("first", in: "app") == .string("new"))
  }

  @Test(arguments: edits)
  func editsAreRefusedByWhoReadsAnew(_ attack: Attack) throws {
    let (store, _) = try prepared(attack)
    let suites = try store.suites()
    defer { suites.close() }
    expect(.damaged(what: "")) { _ = try suites.read("app") }
    expect(.damaged(what: "")) { try suites.set("third", .bool(true), in: "app") }
    #expect(suites.problems().count == 1)
  }

  @Test(arguments: edits)
  func editsAreRefusedByWhoFollows(_ attack: Attack) throws {
    let store = try TestStore()
    let client = MemoryCluster.Client(store.cluster)
    let writer = try store.suites()
    let suites = try store.suites(client)
    defer {
      writer.close()
      suites.close()
    }
    let (old, second) = try store.makeSuite(writer)
    let first = try store.entry { try writer.set("first", .string("other"), in: "app") }
    let settings = SettingsStore(engine: suites)
    let suite = try settings.presentSuite("app")
    #expect(try suite.fetch()?.entries["first"]?.value == .string("other"))
    attack.run(store, first, second, old)
    client.settle()
    // The last good values are still shown, and can't be changed.
    #expect(try suite.fetch()?.entries["first"]?.value == .string("other"))
    #expect(suite.snapshot?.readOnly != nil)
    expect(.readOnly(reason: "")) { try suite.update { $0.settings["x"] = Setting(.bool(true)) } }
  }

  @Test(arguments: forgeries)
  func forgeriesAreRefused(_ attack: Attack) throws {
    let (store, _) = try prepared(attack)
    let suites = try store.suites()
    defer { suites.close() }
    expect(.damaged(what: "")) { _ = try suites.read("app") }
  }

  private func prepared(_ attack: Attack) throws -> (TestStore, KeyValue) {
    let store = try TestStore()
    let writer = try store.suites()
    defer { writer.close() }
    let (old, second) = try store.makeSuite(writer)
    let first = try store.entry { try writer.set("first", .string("other"), in: "app") }
    attack.run(store, first, second, old)
    return (store, first)
  }

  @Test func valuesOfAKeyThatIsMadeAgainCantBeReplayed() throws {
    let store = try TestStore()
    let writer = try store.suites()
    defer { writer.close() }
    let (old, _) = try store.makeSuite(writer)
    try writer.set("first", nil, in: "app")
    var forged = try store.entry { try writer.set("first", .string("new"), in: "app") }
    // Both have version 1: the older one opens, but is not the one that the head answers for.
    forged.value = old.value
    store.cluster.forge([forged])
    let suites = try store.suites()
    defer { suites.close() }
    expect(.damaged(what: "")) { _ = try suites.read("app") }
  }

  @Test func aChangeThatAWatchLeavesOutIsMissed() throws {
    let store = try TestStore()
    let client = MemoryCluster.Client(store.cluster)
    let (writer, suites) = (try store.suites(), try store.suites(client))
    defer {
      writer.close()
      suites.close()
    }
    let (first, _) = try store.makeSuite(writer)
    #expect(try suites.value("first", in: "app") == .string("one"))
    let stamp = try suites.stamp(of: "app")
    store.cluster.hideFromWatches(first.key)
    _ = try writer.update("app", known: nil) { contents in
      contents.settings["first"] = Setting(.bool(true))
      contents.settings["second"] = Setting(.bool(true))
    }
    client.settle()
    #expect(try suites.stamp(of: "app") != stamp)
    #expect(suites.problems().count == 1, "half of a commit is not taken over")
    // All is read again, and is whole.
    #expect(try suites.value("first", in: "app") == .bool(true))
    #expect(suites.problems().isEmpty)
  }

  @Test func aSuiteThatIsHiddenIsMissed() throws {
    let store = try TestStore()
    let writer = try store.suites()
    defer { writer.close() }
    let names = try store.puts { _ = try writer.create("app") }
    store.cluster.forge(
      [], removing: names.map(\.key).filter { String(decoding: $0, as: UTF8.self).contains("/name/") })
    let suites = try store.suites()
    defer { suites.close() }
    expect(.damaged(what: "")) { _ = try suites.suites() }
  }

  @Test func nothingThatWasSeenIsTakenBack() throws {
    let store = try TestStore()
    let seen = SeenState()
    let writer = try store.suites(seen: seen)
    defer { writer.close() }
    _ = try store.makeSuite(writer)
    let before = store.cluster.contents
    try writer.set("first", .string("later"), in: "app")
    // Everything as it was, whole and fitting together, with revisions that go on.
    store.cluster.forge(before)
    let again = try store.suites(seen: SeenState(seen.contents))
    defer { again.close() }
    expect(.damaged(what: "")) { _ = try again.read("app") }
    // A client that has never seen the later state can't know: signed sights are for that.
    let fresh = try store.suites()
    defer { fresh.close() }
    #expect(try fresh.value("first", in: "app") == .string("one"))
  }

  @Test func aRestoredSnapshotIsRefusedUntilItIsAccepted() throws {
    let store = try TestStore()
    let seen = SeenState()
    let writer = try store.suites(seen: seen)
    defer { writer.close() }
    _ = try store.makeSuite(writer)
    let revision = store.cluster.revision
    try writer.set("first", .string("later"), in: "app")
    store.cluster.restore(revision: revision)
    expect(.readOnly(reason: "")) { try writer.set("second", .bool(true), in: "app") }
    #expect(try writer.value("first", in: "app") == .string("later"), "what was read stays")
    #expect(try writer.readOnlyReason(of: "app") != nil)
    let accepted = SeenState(seen.contents)
    accepted.accept()
    let again = try store.suites(seen: accepted)
    defer { again.close() }
    #expect(try again.value("first", in: "app") == .string("one"))
    try again.set("first", .string("new"), in: "app")
  }

  @Test func anotherClusterIsRefused() throws {
    let store = try TestStore()
    let seen = SeenState()
    let writer = try store.suites(seen: seen)
    defer { writer.close() }
    _ = try store.makeSuite(writer)
    store.cluster.restore(revision: store.cluster.revision, cluster: 0xC2)
    expect(.readOnly(reason: "")) { try writer.set("first", .bool(true), in: "app") }
    let again = try store.suites(seen: SeenState(seen.contents))
    defer { again.close() }
    expect(.readOnly(reason: "")) { _ = try again.suites() }
  }

  @Test func theClusterSeesNoNameAndNoValue() throws {
    let store = try TestStore()
    let suites = try store.suites()
    defer { suites.close() }
    _ = try suites.create("MARKER-suite")
    try suites.set("MARKER-key", .string("MARKER-value"), in: "MARKER-suite")
    try suites.rename("MARKER-suite", to: "MARKER-renamed")
    let keychain = try store.keychain()
    defer { keychain.close() }
    var item = KeychainSamples.generic("MARKER-service", "MARKER-account")
    (item.label, item.programs) = ("MARKER-label", "allow MARKER")
    item.attributes = ["MARKER": Array("MARKER".utf8)]
    try keychain.add(item, "MARKER-secret")
    for value in store.cluster.contents {
      #expect(!String(decoding: value.key + value.value, as: UTF8.self).contains("MARKER"))
    }
  }
}

extension [UInt8] {
  /// Whether this is the head that answers for the entry of a setting.
  fileprivate func isHead(of entry: KeyValue) -> Bool {
    let text = String(decoding: self, as: UTF8.self)
    let id = String(decoding: entry.key, as: UTF8.self).split(separator: "/").dropLast().last ?? ""
    return text.hasSuffix("/s/head/\(id)")
  }
}
