import Cluster
import Layers
import Model
import Store
import StoreConformance
import Testing

/// Layers whose suites a cluster holds.
@Suite(.timeLimit(.minutes(1))) struct ClusterLayersTests {
  private func layered(_ suites: ClusterSuites) throws -> LayeredSuites {
    try LayeredSuites(
      [SettingLayer("fleet", in: suites), SettingLayer("host", in: suites)], writing: "host")
  }

  /// But for the longest names: the layer's name is a part of the stored one.
  @Test(arguments: SuiteEngineConformance.cases.filter { $0.description != "odd names are names" })
  func keepsTheProtocol(_ test: SuiteEngineConformance.Case) throws {
    let suites = try TestStore().suites()
    defer { suites.close() }
    try test.run(layered(suites))
  }

  @Test func aKeyOfALowerLayerIsRemovedForThisHostOnly() throws {
    let store = try TestStore()
    let (suites, others) = (try store.suites(), try store.suites())
    defer {
      suites.close()
      others.close()
    }
    _ = try others.create("fleet::app")
    try others.set("a", .integer(1), in: "fleet::app")
    let layered = try layered(suites)
    try layered.set("a", nil, in: "app")
    try layered.set("b", .integer(2), in: "app")
    #expect(try layered.read("app")?.settings.keys == ["b"])
    #expect(try layered.origin(of: "b", in: "app") == "host")
    #expect(try others.value("a", in: "fleet::app") == .integer(1), "the lower layer is as it was")
  }

  /// A change of a layer as a process of its own makes it.
  private func change(
    _ store: TestStore, _ body: (LayeredSuites) throws -> Void
  ) throws {
    let suites = try store.suites()
    defer { suites.close() }
    suites.setTombstone(SettingLayers.tombstone)
    let layered = try layered(suites)
    layered.history?.keep(.standard)
    try body(layered)
  }

  /// How many values of a suite the cluster keeps, as a client that begins now sees it.
  private func stored(_ suite: ExactString, in store: TestStore) throws -> Int {
    let suites = try store.suites()
    defer { suites.close() }
    return try suites.versions(of: suite).count
  }

  @Test func theHistoryIsThatOfTheWrittenLayer() throws {
    let store = try TestStore()
    let others = try store.suites()
    defer { others.close() }
    others.keep(.standard)
    _ = try others.create("fleet::app")
    try others.set("a", .integer(1), in: "fleet::app")
    for value in [2, nil, 3, 4] as [Int128?] {
      try change(store) { try $0.set("a", value.map { .integer($0) }, in: "app") }
    }
    try change(store) { layered in
      let history = try #require(layered.history)
      // The value that stands for a removed key is no version.
      #expect(try history.versions(of: "app").map(\.value) == [.integer(2), .integer(3)])
      #expect(try history.suitesWithVersions() == ["app"])
      #expect(try stored("host::app", in: store) == 2 && stored("fleet::app", in: store) == 0)
      #expect(history.keepsVersions(of: "app"))
      #expect(try history.purge("app", "a") == 2)
      #expect(try history.versions(of: "app").isEmpty && stored("host::app", in: store) == 0)
      try history.setKeepsVersions(false, of: "app")
    }
    try change(store) { try $0.set("a", .integer(5), in: "app") }
    try change(store) { suites in
      let found = try suites.history?.versions(of: "app")
      #expect(found?.isEmpty == true)
    }
  }

  /// A key that a lower layer has is removed by a value of the layer that is written.
  @Test func aRemovedKeyIsSaidToBeRemoved() throws {
    let store = try TestStore()
    let others = try store.suites()
    defer { others.close() }
    _ = try others.create("fleet::app")
    try others.set("a", .integer(1), in: "fleet::app")
    try change(store) { try $0.set("a", .integer(2), in: "app") }
    try change(store) { try $0.set("a", .integer(3), in: "app") }
    try change(store) { try $0.set("a", nil, in: "app") }
    try change(store) { layered in
      let versions = try layered.history?.versions(of: "app") ?? []
      #expect(versions.map(\.value) == [.integer(2), .integer(3)])
      #expect(versions.map(\.changes) == [.value, .removal])
      let shown = try layered.read("app")
      #expect(shown?.settings.isEmpty == true)
    }
    // To set it again is no change of a value that it had.
    try change(store) { try $0.set("a", .integer(4), in: "app") }
    try change(store) { suites in
      let found = try suites.history?.versions(of: "app")
      #expect(found?.count == 2)
    }
  }
}
