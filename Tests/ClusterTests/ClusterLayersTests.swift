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
}
