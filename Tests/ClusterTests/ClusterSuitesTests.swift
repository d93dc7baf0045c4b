import Cluster
import ClusterInMemory
import EtcdClient
import Model
import Store
import StoreConformance
import Testing

@Suite(.timeLimit(.minutes(1))) struct ClusterSuitesTests {
  @Test(arguments: SuiteEngineConformance.cases)
  func keepsTheProtocol(_ test: SuiteEngineConformance.Case) throws {
    let store = try TestStore()
    let suites = try store.suites()
    defer { suites.close() }
    try test.run(suites)
  }

  /// Many suites are listed, looked up and followed by the list of suites and their heads.
  @Test func aSuiteIsReadWhenItIsUsedOrChanged() async throws {
    let store = try TestStore()
    let others = try store.suites()
    defer { others.close() }
    for index in 0..<300 {
      _ = try others.create(ExactString("suite-\(index)"))
      try others.set("key", .integer(Int128(index)), in: ExactString("suite-\(index)"))
    }
    let client = MemoryCluster.Client(store.cluster)
    let (changes, report) = AsyncStream.makeStream(of: ExactString.self)
    var changed = changes.makeAsyncIterator()
    let suites = try store.suites(client, changed: { report.yield($0) })
    defer { suites.close() }
    let settings = SettingsStore(engine: suites)
    settings.beginFollowing()
    let began = client.calls
    #expect(try settings.suiteNames().count == 300)
    for index in 0..<300 {
      let suite = try #require(try settings.existingSuite(ExactString("suite-\(index)")))
      #expect(try suite.provenStamp() != nil)
      #expect(suite.snapshot == nil)
    }
    #expect(try settings.existingSuite("suite-300") == nil)
    settings.refreshAll()
    #expect(client.calls == began)
    // One that is used.
    #expect(try settings.suite("suite-3").fetch()?.entries["key"] != nil)
    #expect(client.calls == began + 1)
    // The list is read again: one of 300 has changed, which was not read before.
    client.holdWatches()
    try others.set("key", .string("new"), in: "suite-7")
    store.cluster.compactWatches()
    client.releaseWatches()
    #expect(await changed.next() == "suite-7")
    settings.refresh("suite-7")
    #expect(settings.suite("suite-7").snapshot?.entries.count == 1)
    // The watch of suites reports no other one.
    try others.set("key", .string("new"), in: "suite-9")
    #expect(await changed.next() == "suite-9")
  }
  @Test func contentsThatAreNotStoredAreNotShared() throws {
    let store = try TestStore()
    let (suites, others) = (try store.suites(), try store.suites())
    defer {
      suites.close()
      others.close()
    }
    _ = try suites.create("app")
    try suites.set("key", .integer(1), in: "app")
    let shown = try #require(try suites.read("app"))
    suites.share(shown, of: "app")
    try others.set("key", .integer(2), in: "app")
    _ = try suites.update("app", known: nil) { _ in }
    suites.share(shown, of: "app")
    suites.share(shown, of: "other")
    #expect(try suites.read("app")?.settings["key"]?.value == .integer(2))
    var added = try #require(try suites.read("app"))
    added.settings["more"] = Setting(.integer(3))
    suites.share(added, of: "app")
    #expect(try suites.read("app")?.settings.keys == ["key"])
    // The suite that is shared is followed on.
    suites.share(try #require(try suites.read("app")), of: "app")
    try suites.set("key", .integer(4), in: "app")
    #expect(try others.update("app", known: nil) { _ in }.settings["key"]?.value == .integer(4))
  }
}
