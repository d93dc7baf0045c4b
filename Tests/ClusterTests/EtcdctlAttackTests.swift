import Cluster
import ClusterRecords
import EtcdClient
import EtcdHarness
import Model
import SecretMemory
import Store
import StoreConformance
import Suites
import Testing
import VaultRecords

/// Attacks by etcdctl on a store on three real servers.
@Suite(.timeLimit(.minutes(3))) struct EtcdctlAttackTests {
  /// An attack on two settings of a suite, which had other values before.
  enum Attack: String, CaseIterable {
    case forged
    case replayed
    case swapped
    case deleted
    case headRolledBack
    case allRolledBack
    case ofAnotherCluster
  }

  private struct Contents {
    var heads: [Etcdctl.Stored]
    var entries: [Etcdctl.Stored]

    init(_ etcdctl: Etcdctl, _ store: String) throws {
      heads = try etcdctl.get("/keyhole/1/\(store)/s/head/")
      entries = try etcdctl.get("/keyhole/1/\(store)/s/set/")
    }
  }

  private func fill(_ suites: ClusterSuites, _ number: Int128) throws {
    if try suites.read("app") == nil { _ = try suites.create("app") }
    for name in ["a", "b"] as [ExactString] { try suites.set(name, .integer(number), in: "app") }
  }

  @Test func editsAreRefused() throws {
    let nodes = try EtcdNodes()
    var options = EtcdNodes.Options()
    options.count = 1
    let others = try EtcdNodes(options)
    for attack in Attack.allCases {
      let store = try RealStore(nodes, attack.rawValue)
      let (suites, follower) = (try store.suites(), try store.suites())
      defer {
        suites.close()
        follower.close()
      }
      try fill(suites, 1)
      let before = try Contents(Etcdctl(nodes), attack.rawValue)
      try fill(suites, 2)
      let now = try Contents(Etcdctl(nodes), attack.rawValue)
      try #require(before.entries.count == 2 && now.heads.count == 1)
      #expect(try follower.value("a", in: "app") == .integer(2))
      try make(attack, before, now, nodes, others)
      let fresh = try store.suites()
      defer { fresh.close() }
      expect(.damaged(what: ""), "\(attack)") { _ = try fresh.read("app") }
      expect(.damaged(what: ""), "\(attack)") { try follower.set("c", .bool(true), in: "app") }
    }
  }

  private func make(
    _ attack: Attack, _ before: Contents, _ now: Contents, _ nodes: EtcdNodes, _ others: EtcdNodes
  ) throws {
    let etcdctl = Etcdctl(nodes)
    let (first, second) = (now.entries[0], now.entries[1])
    switch attack {
    case .forged: try etcdctl.put(first.key, "Zm9yZ2Vk")
    case .replayed: try etcdctl.put(first.key, before.entries[0].value)
    case .swapped:
      try etcdctl.put(first.key, second.value)
      try etcdctl.put(second.key, first.value)
    case .deleted: try etcdctl.delete(first.key)
    case .headRolledBack: try etcdctl.put(before.heads[0].key, before.heads[0].value)
    case .allRolledBack:
      for old in before.entries + before.heads { try etcdctl.put(old.key, old.value) }
    case .ofAnotherCluster:
      let store = try RealStore(others, attack.rawValue)
      let suites = try store.suites()
      defer { suites.close() }
      try fill(suites, 3)
      let theirs = try Contents(Etcdctl(others), attack.rawValue)
      for (old, new) in zip(now.entries + now.heads, theirs.entries + theirs.heads) {
        try etcdctl.put(old.key, new.value)
      }
    }
  }

  @Test func secretsOfTwoItemsCantBeSwappedOrReplayed() throws {
    let nodes = try EtcdNodes()
    let etcdctl = Etcdctl(nodes)
    for attack in ["swapped", "replayed", "deleted"] {
      let store = try RealStore(nodes, attack)
      let keychain = try store.keychain()
      defer { keychain.close() }
      let first = try keychain.add(KeychainSamples.generic("a"), "one").id
      let old = try etcdctl.get("/keyhole/1/\(attack)/v/")
      try keychain.add(KeychainSamples.generic("b"), "two")
      _ = try keychain.rewrite(first, readingSecret: false) { (_, secret) throws(StoreError) in
        do { secret = try KeychainSamples.secret("new") } catch { throw .outOfMemory }
      }
      let now = try etcdctl.get("/keyhole/1/\(attack)/v/")
      // Each value of a secret has a key of its own, below that of its item.
      let item = old[0].key.prefix("/keyhole/1/\(attack)/v/".count + 32)
      let mine = try #require(now.first { $0.key.hasPrefix(item) })
      let theirs = try #require(now.first { !$0.key.hasPrefix(item) })
      switch attack {
      case "swapped":
        try etcdctl.put(mine.key, theirs.value)
        try etcdctl.put(theirs.key, mine.value)
      case "replayed": try etcdctl.put(mine.key, old[0].value)
      default: try etcdctl.delete(mine.key)
      }
      expect(.damaged(what: ""), "\(attack)") { _ = try keychain.secret(of: first) }
    }
  }

  @Test func aRestoredSnapshotIsRefusedUntilItIsAccepted() throws {
    let nodes = try EtcdNodes()
    let store = try RealStore(nodes, "restored")
    let seen = SeenState()
    let suites = try store.suites(seen: seen)
    defer { suites.close() }
    try fill(suites, 1)
    try nodes.etcdctl("snapshot save $0/snapshot", at: [0])
    try fill(suites, 2)
    try nodes.restore("\(nodes.folder)/snapshot")
    expect(.readOnly(reason: "")) { try suites.set("a", .integer(3), in: "app") }
    #expect(try suites.value("a", in: "app") == .integer(2), "what was read stays")
    let again = try store.suites(seen: SeenState(seen.contents))
    defer { again.close() }
    expect(.readOnly(reason: "")) { _ = try again.read("app") }
    let accepted = SeenState(seen.contents)
    accepted.accept()
    let last = try store.suites(seen: accepted)
    defer { last.close() }
    #expect(try last.value("a", in: "app") == .integer(1))
    try last.set("a", .integer(4), in: "app")
  }
}
