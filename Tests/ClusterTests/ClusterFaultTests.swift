import Cluster
import ClusterInMemory
import Dispatch
import EtcdClient
import Model
import Platform
import Store
import StoreConformance
import Synchronization
import Testing

/// The results of calls while the cluster fails, and the copies afterwards.
@Suite(.timeLimit(.minutes(1))) struct ClusterFaultTests {
  @Test(arguments: [true, false])
  func anUnknownOutcomeIsLookedUp(wasDone: Bool) throws {
    let store = try TestStore()
    let client = MemoryCluster.Client(store.cluster)
    let suites = try store.suites(client)
    defer { suites.close() }
    _ = try suites.create("app")
    try suites.set("n", .integer(0), in: "app")
    client.inject(wasDone ? .unknownDone : .unknownNotDone)
    let revision = store.cluster.revision
    _ = try suites.update("app", known: nil) { contents in
      guard case .integer(let n)? = contents.settings["n"]?.value else { return }
      contents.settings["n"] = Setting(.integer(n + 1))
    }
    #expect(store.cluster.revision == revision + 1, "it is made once")
    #expect(try suites.value("n", in: "app") == .integer(1))
  }

  @Test func aCommitThatIsMadeAfterAllIsNotMadeTwice() throws {
    let store = try TestStore()
    let client = MemoryCluster.Client(store.cluster)
    let suites = try store.suites(client)
    defer { suites.close() }
    _ = try suites.create("app")
    client.inject(.unknownDoneLater)
    let revision = store.cluster.revision
    try suites.set("n", .integer(1), in: "app")
    #expect(store.cluster.revision == revision + 1)
  }

  @Test func anUnknownOutcomeUnderOthersChangesIsLookedUp() throws {
    let store = try TestStore()
    let client = MemoryCluster.Client(store.cluster)
    let (suites, others) = (try store.suites(client), try store.suites())
    defer {
      suites.close()
      others.close()
    }
    _ = try suites.create("app")
    try suites.set("n", .integer(0), in: "app")
    // The first attempt is not made, and another client changes the suite before it is looked up.
    client.holdWatches()
    client.inject(.unknownNotDone)
    try others.set("other", .bool(true), in: "app")
    _ = try suites.update("app", known: nil) { contents in
      guard case .integer(let n)? = contents.settings["n"]?.value else { return }
      contents.settings["n"] = Setting(.integer(n + 1))
    }
    client.releaseWatches()
    #expect(try suites.read("app")?.settings.count == 2)
    #expect(try suites.value("n", in: "app") == .integer(1))
  }

  @Test func countersOfManyClientsLoseNoStep() throws {
    let store = try TestStore()
    let clients = try (0..<4).map { _ in
      let client = MemoryCluster.Client(store.cluster)
      return (client, try store.suites(client))
    }
    defer { for (_, suites) in clients { suites.close() } }
    _ = try clients[0].1.create("app")
    try clients[0].1.set("n", .integer(0), in: "app")
    let failures = Mutex<[String]>([])
    DispatchQueue.concurrentPerform(iterations: 4) { number in
      let (client, suites) = clients[number]
      do {
        // The others make 15 commits at most: the head names the last 16, and what is not among them stays unknown.
        for round in 0..<5 {
          if round.isMultiple(of: 2) { client.inject(.unknownDone) }
          if round.isMultiple(of: 3) { client.inject(.unknownNotDone) }
          _ = try suites.update("app", known: nil) { contents throws(StoreError) in
            guard case .integer(let n)? = contents.settings["n"]?.value else { throw .damaged(what: "n") }
            contents.settings["n"] = Setting(.integer(n + 1))
          }
        }
      } catch { failures.withLock { $0.append("\(error)") } }
    }
    #expect(failures.withLock { $0 } == [])
    let reader = try store.suites()
    defer { reader.close() }
    #expect(try reader.value("n", in: "app") == .integer(20))
  }

  @Test func aValueThatOthersHaveReplacedIsSetAgain() throws {
    let store = try TestStore()
    let client = MemoryCluster.Client(store.cluster)
    let (suites, others) = (try store.suites(client), try store.suites())
    defer {
      suites.close()
      others.close()
    }
    _ = try suites.create("app")
    try suites.set("n", .integer(1), in: "app")
    client.holdWatches()
    try others.set("n", .integer(2), in: "app")
    // The copy still has the value that is set.
    try suites.set("n", .integer(1), in: "app")
    client.releaseWatches()
    let fresh = try store.suites()
    defer { fresh.close() }
    #expect(try fresh.value("n", in: "app") == .integer(1))
    client.holdWatches()
    try others.set("n", nil, in: "app")
    try suites.remove("app")
    client.releaseWatches()
  }

  @Test func withoutTheClusterSettingsAreReadAndNothingElse() throws {
    let store = try TestStore()
    let client = MemoryCluster.Client(store.cluster)
    let (suites, keychain) = (try store.suites(client), try store.keychain(client))
    defer {
      suites.close()
      keychain.close()
    }
    _ = try suites.create("app")
    try suites.set("n", .integer(1), in: "app")
    let id = try keychain.add(KeychainSamples.generic("a"), "s").id
    client.setAway(.unavailable("no server answers"))
    client.settle()
    #expect(try suites.value("n", in: "app") == .integer(1))
    #expect(suites.silence != nil)
    expect(.unreachable(reason: "")) { try suites.set("n", .integer(2), in: "app") }
    expect(.unreachable(reason: "")) { _ = try keychain.secret(of: id) }
    #expect(try keychain.items().map(\.id) == [id])
    client.setAway(nil)
    client.settle()
    #expect(suites.silence == nil)
    try suites.set("n", .integer(3), in: "app")
    #expect(try keychain.bytes(of: id) == [UInt8(ascii: "s")])
  }

  /// A client's clock that is a day ahead, or stands at 1970: the times that it stores are those of its changes.
  @Test(arguments: [86_400, -1_000_000_000_000] as [Int64])
  func aClockThatIsWrongLosesNoChange(_ seconds: Int64) throws {
    let store = try TestStore()
    let (suites, wrong) = (try store.suites(), try store.suites())
    defer {
      suites.close()
      wrong.close()
    }
    _ = try suites.create("app")
    try suites.set("n", .integer(0), in: "app")
    let time = Timestamp(seconds: max(0, Timestamp.now.seconds &+ seconds))
    let stored = try wrong.update("app", known: nil) { contents in
      contents.settings["n"] = Setting(.integer(1), modified: time)
    }
    #expect(stored.settings["n"]?.modified == time)
    try suites.set("n", .integer(2), in: "app")
    let after = try wrong.update("app", known: nil) { _ in }
    #expect(after.settings["n"]?.value == .integer(2))
    #expect(try #require(after.settings["n"]?.modified) > time)
    #expect(after.stamp != stored.stamp)
    // No suite's time goes back.
    #expect(try #require(after.stamp).modified >= #require(stored.stamp).modified)
  }

  @Test func aFullClusterSaysSo() throws {
    let store = try TestStore()
    let suites = try store.suites()
    defer { suites.close() }
    _ = try suites.create("app")
    store.cluster.setNoSpace(true)
    expect(.noSpace) { try suites.set("n", .integer(1), in: "app") }
    #expect(try suites.value("n", in: "app") == nil)
    store.cluster.setNoSpace(false)
    try suites.set("n", .integer(1), in: "app")
  }

  @Test func aValueAboveOneMebibyteIsRefused() throws {
    let store = try TestStore()
    let suites = try store.suites()
    defer { suites.close() }
    _ = try suites.create("app")
    try suites.set("large", .data([UInt8](repeating: 1, count: 1 << 20)), in: "app")
    try suites.set("text", .string(ExactString(String(repeating: "x", count: 1 << 20))), in: "app")
    expect(.tooLarge(limit: 1 << 20)) {
      try suites.set("larger", .data([UInt8](repeating: 1, count: 1 << 20 + 1)), in: "app")
    }
    #expect(try suites.read("app")?.settings.count == 2)
  }

  @Test func whatOthersChangeIsTold() throws {
    let store = try TestStore()
    let told = Mutex<[ExactString]>([])
    let isTold = Promise<Void>()
    let client = MemoryCluster.Client(store.cluster)
    let reader = try store.suites(client) { name in
      if told.withLock({ told in
        told.append(name)
        return told.contains("b")
      }) {
        isTold.fulfill(())
      }
    }
    let writer = try store.suites()
    defer {
      reader.close()
      writer.close()
    }
    _ = try writer.create("app")
    #expect(try reader.value("n", in: "app") == nil)
    try writer.set("n", .integer(1), in: "app")
    try writer.rename("app", to: "b")
    #expect(isTold.wait(within: .seconds(30)) != nil)
    #expect(Set(told.withLock { $0 }).isSuperset(of: ["app", "b"]))
    #expect(try reader.value("n", in: "b") == .integer(1))
    #expect(try reader.read("app") == nil)
  }

  @Test func aWatchBehindACompactionBeginsAgain() throws {
    let store = try TestStore()
    let changed = Promise<Void>()
    let client = MemoryCluster.Client(store.cluster)
    let reader = try store.suites(client) { _ in changed.fulfill(()) }
    let writer = try store.suites()
    defer {
      reader.close()
      writer.close()
    }
    _ = try writer.create("app")
    try writer.set("n", .integer(1), in: "app")
    #expect(try reader.value("n", in: "app") == .integer(1))
    client.holdWatches()
    try writer.set("n", .integer(2), in: "app")
    store.cluster.compactWatches()
    client.releaseWatches()
    #expect(changed.wait(within: .seconds(30)) != nil)
    // The new watch tells of what comes.
    try writer.set("n", .integer(3), in: "app")
    try reader.set("m", .integer(1), in: "app")
    #expect(try reader.value("n", in: "app") == .integer(3))
  }
}
