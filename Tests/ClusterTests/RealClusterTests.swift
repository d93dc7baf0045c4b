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
    let cases = KeychainConformance.cases + KeychainConformance.history
    for (number, test) in cases.enumerated() {
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

  /// A change that is not answered is looked up within the same time, and those who wait for it end with it.
  @Test func callsOfManyThreadsEndInTime() throws {
    let nodes = try EtcdNodes()
    let relay = try Relay(to: nodes.clientPorts[0])
    defer { relay.stop() }
    let store = try RealStore(nodes, "late")
    var configuration = EtcdCluster.Configuration(
      endpoints: [try #require(EtcdEndpoint(relay.endpoint, isSecure: false))])
    configuration.deadline = .seconds(3)
    let (suites, keychain) = try {
      let client = EtcdCluster(configuration)
      return (try store.suites(client), try store.keychain(client))
    }()
    defer {
      suites.close()
      keychain.close()
    }
    _ = try suites.create("app")
    try suites.set("n", .integer(1), in: "app")
    let item = try keychain.add(KeychainSamples.generic("a"), "secret").id
    relay.set(.silent)
    let began = ContinuousClock.now
    onThreads(6) { thread in
      expect(.unreachable(reason: "")) {
        if thread == 5 {
          _ = try keychain.secret(of: item)
        } else {
          try suites.set("n", .integer(2), in: "app")
        }
      }
    }
    #expect(began.duration(to: .now) < .seconds(5))
    relay.set(.open)
    let end = ContinuousClock.now + .seconds(30)
    while (try? suites.set("n", .integer(3), in: "app")) == nil, ContinuousClock.now < end {}
    #expect(try suites.value("n", in: "app") == .integer(3))
    #expect(try keychain.bytes(of: item) == Array("secret".utf8))
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
