import Cluster
import ClusterRecords
import Dispatch
import EtcdClient
import EtcdHarness
import Model
import Platform
import Store
import StoreConformance
import Synchronization
import Testing

/// The engines on three real servers.
@Suite(.timeLimit(.minutes(5))) struct RealClusterTests {
  @Test func suitesKeepTheProtocol() throws {
    let nodes = try EtcdNodes()
    for (number, test) in SuiteEngineConformance.cases.enumerated() {
      let suites = try RealStore(nodes, "suites-\(number)").suites()
      defer { suites.close() }
      #expect(throws: Never.self, "\(test.description)") { try test.run(suites) }
    }
  }

  @Test func keychainsKeepTheProtocol() throws {
    let nodes = try EtcdNodes()
    for (number, test) in KeychainConformance.cases.enumerated() {
      let store = try RealStore(nodes, "keychain-\(number)")
      let opened = Mutex<[ClusterKeychain]>([])
      defer { for keychain in opened.withLock({ $0 }) { keychain.close() } }
      #expect(throws: Never.self, "\(test.description)") {
        try test.run {
          let keychain = try store.keychain()
          opened.withLock { $0.append(keychain) }
          return keychain
        } catchUp: { engine in
          try (engine as? ClusterKeychain)?.catchUp()
        }
      }
    }
  }

  @Test func editsOfTheClusterAreRefused() throws {
    let nodes = try EtcdNodes()
    for attack in ["forged", "replayed", "swapped", "deleted"] {
      let store = try RealStore(nodes, attack)
      let raw = store.client()
      let suites = try store.suites()
      defer { suites.close() }
      _ = try suites.create("app")
      try suites.set("a", .integer(1), in: "app")
      let prefix = KeyRange(prefix: Array((store.paths.prefix + "s/set/").utf8))
      let old = try #require(try raw.read(RangeRequest(prefix)).values.first)
      try suites.set("a", .integer(2), in: "app")
      try suites.set("b", .integer(3), in: "app")
      let other = try #require(try raw.read(RangeRequest(prefix)).values.first { $0.key != old.key })
      let operation: KeyOperation =
        switch attack {
        case "forged": .put(key: old.key, value: [1, 2, 3], lease: 0)
        case "replayed": .put(key: old.key, value: old.value, lease: 0)
        case "swapped": .put(key: old.key, value: other.value, lease: 0)
        default: .delete(KeyRange(key: old.key))
        }
      _ = try raw.commit(ClusterTransaction([operation]))
      let fresh = try store.suites()
      defer { fresh.close() }
      expect(.damaged(what: ""), "\(attack)") { _ = try fresh.read("app") }
    }
  }

  @Test func aChangeOfAnotherClientIsReported() throws {
    let store = try RealStore(try EtcdNodes(), "news")
    let changed = Promise<Void>()
    let reader = try store.suites { _ in changed.fulfill(()) }
    let writer = try store.suites()
    defer {
      reader.close()
      writer.close()
    }
    _ = try writer.create("app")
    #expect(try reader.value("n", in: "app") == nil)
    try writer.set("n", .integer(1), in: "app")
    #expect(changed.wait(within: .seconds(30)) != nil)
  }

  @Test func countersLoseNoStepWhileServersAreKilled() throws {
    let nodes = try EtcdNodes()
    let store = try RealStore(nodes, "counter")
    let clients = try (0..<3).map { _ in try store.suites() }
    defer { for suites in clients { suites.close() } }
    _ = try clients[0].create("app")
    try clients[0].set("n", .integer(0), in: "app")
    // Commits that were acknowledged, and those of which that is not known.
    let made = Atomic<Int>(0)
    let unknown = Atomic<Int>(0)
    DispatchQueue.concurrentPerform(iterations: 4) { number in
      guard number < 3 else {
        for index in 0..<3 {
          nodes.kill(index)
          try? nodes.start(index)
        }
        return
      }
      for _ in 0..<40 {
        do {
          _ = try clients[number].update("app", known: nil) { contents throws(StoreError) in
            guard case .integer(let n)? = contents.settings["n"]?.value else { throw .damaged(what: "n") }
            contents.settings["n"] = Setting(.integer(n + 1))
          }
          made.add(1, ordering: .relaxed)
        } catch {
          unknown.add(1, ordering: .relaxed)
        }
      }
    }
    let reader = try store.suites()
    defer { reader.close() }
    guard case .integer(let n)? = try reader.value("n", in: "app") else {
      return #expect(Bool(false), "no counter")
    }
    let least = Int128(made.load(ordering: .relaxed))
    #expect(n >= least && n <= least + Int128(unknown.load(ordering: .relaxed)))
    #expect(least > 0)
  }
}
