import Layers
import Model
import Store
import StoreConformance
import Testing

@Suite(.timeLimit(.minutes(1))) struct LayeredSuitesTests {
  private let engine = MemorySuites()

  private func suites(writing layer: String = "host/x") throws -> LayeredSuites {
    try LayeredSuites(
      ["fleet/all", "fleet/web", "host/x"].map { name throws(StoreError) in try SettingLayer(name, in: engine)
      },
      writing: layer)
  }

  private func values(_ suites: any SuiteEngine) throws -> [ExactString: SettingValue]? {
    try suites.read("app")?.settings.mapValues(\.value).dictionary
  }

  private func set(
    _ suites: LayeredSuites, _ key: ExactString, _ value: SettingValue?
  ) throws {
    _ = try suites.update("app", known: nil) { $0.settings[key] = value.map { Setting($0) } }
  }

  /// But for the longest names: the layer's name is a part of the stored one.
  @Test(arguments: SuiteEngineConformance.cases.filter { $0.description != "odd names are names" })
  func keepsTheProtocolInOneEngine(_ test: SuiteEngineConformance.Case) throws {
    try test.run(suites())
  }

  @Test(arguments: SuiteEngineConformance.cases)
  func keepsTheProtocolInEnginesOfTheirOwn(_ test: SuiteEngineConformance.Case) throws {
    let layers = ["low", "middle", "high"].map { SettingLayer($0, of: MemorySuites()) }
    try test.run(LayeredSuites(layers, writing: "middle"))
  }

  @Test func theLastLayerThatHasAKeyGivesItsValue() throws {
    engine.replace("fleet:all::app", with: ["a": .integer(1), "b": .integer(1)])
    engine.replace("fleet:web::app", with: ["b": .integer(2)])
    let suites = try suites()
    #expect(try values(suites) == ["a": .integer(1), "b": .integer(2)])
    #expect(try Array(suites.suites().keys) == ["app"])
    #expect(try suites.origin(of: "a", in: "app") == "fleet/all")
    #expect(try suites.origin(of: "b", in: "app") == "fleet/web")
    #expect(try suites.origin(of: "c", in: "app") == nil)
    // A change by others in any layer is another stamp, and is read.
    let stamp = try suites.stamp(of: "app")
    engine.replace("fleet:all::app", with: ["a": .integer(3), "c": .integer(3)])
    #expect(try suites.stamp(of: "app") != stamp)
    #expect(try values(suites) == ["a": .integer(3), "b": .integer(2), "c": .integer(3)])
    #expect(suites.suites(stored: "fleet:web::app") == ["app"])
    #expect(suites.suites(stored: "other:web::app").isEmpty)
  }

  @Test func changesAreWrittenToOneLayer() throws {
    let below: [ExactString: SettingValue] = ["a": .integer(1), "b": .integer(1)]
    engine.replace("fleet:all::app", with: below)
    let suites = try suites()
    try set(suites, "a", .integer(1))
    #expect(try engine.read("host:x::app") == nil, "a change that changes nothing makes no suite")
    try set(suites, "a", .integer(2))
    #expect(try suites.origin(of: "a", in: "app") == "host/x")
    try set(suites, "a", nil)
    try set(suites, "b", nil)
    #expect(try values(suites)?.isEmpty == true)
    #expect(try engine.read("fleet:all::app")?.settings.mapValues(\.value).dictionary == below)
    #expect(try engine.read("host:x::app")?.settings["a"]?.value == SettingLayers.tombstone)
    // Over the tombstone a key can be set again, and it goes without a trace where no layer below has it.
    try set(suites, "a", .integer(4))
    engine.replace("fleet:all::app", with: [:])
    try set(suites, "a", nil)
    #expect(try engine.read("host:x::app")?.settings["a"] == nil)
  }

  @Test func aLayerAboveIsNotWrittenOver() throws {
    engine.replace("host:x::app", with: ["a": .integer(1)])
    let suites = try suites(writing: "fleet/web")
    #expect(throws: StoreError.self) { try set(suites, "a", .integer(2)) }
    #expect(try engine.read("fleet:web::app") == nil)
    try set(suites, "b", .integer(2))
    #expect(try suites.origin(of: "b", in: "app") == "fleet/web")
  }

  @Test func aSuiteOfAnotherLayerIsNotRemovedOrRenamed() throws {
    engine.replace("fleet:all::app", with: [:])
    let suites = try suites()
    #expect(throws: StoreError.exists) { _ = try suites.create("app") }
    #expect(throws: StoreError.self) { try suites.remove("app") }
    #expect(throws: StoreError.self) { try suites.rename("app", to: "other") }
    #expect(try suites.suites().count == 1)
  }

  @Test func layersAreNamedByPartsOfPlainLetters() throws {
    #expect(try SettingLayer("fleet/all", in: engine).suite(stored: "fleet:all::") == nil)
    for name in ["", "/", "a/", "/a", "a//b", "a:b", "ü", "a b", String(repeating: "x", count: 129)] {
      #expect(throws: StoreError.self, "\(name)") { _ = try SettingLayer(name, in: engine) }
    }
    let layers = try ["fleet", "fleet/all"].map { name throws(StoreError) in
      try SettingLayer(name, in: engine)
    }
    // No layer has suites of another one whose name it begins.
    #expect(layers[0].suite(stored: "fleet:all::app") == nil)
    #expect(layers[1].suite(stored: "fleet:all::app") == "app")
    #expect(throws: StoreError.notFound) { _ = try LayeredSuites(layers, writing: "host/x") }
    #expect(throws: StoreError.exists) { _ = try LayeredSuites(layers + layers, writing: "fleet") }
  }
}
