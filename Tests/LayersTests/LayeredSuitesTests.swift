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

  @Test func aSuiteOfAnotherLayerIsNotRenamed() throws {
    engine.replace("fleet:all::app", with: [:])
    let suites = try suites()
    #expect(throws: StoreError.exists) { _ = try suites.create("app") }
    #expect(throws: StoreError.self) { try suites.rename("app", to: "other") }
    #expect(try suites.suites().count == 1)
    // One of a layer above is not removed either, nor one of a layer with an engine of its own.
    engine.replace("host:x::high", with: [:])
    #expect(throws: StoreError.self) { try self.suites(writing: "fleet/web").remove("high") }
    let apart = ["low", "high"].map { SettingLayer($0, of: MemorySuites()) }
    _ = try apart[0].engine.create("app")
    #expect(throws: StoreError.self) { try LayeredSuites(apart, writing: "high").remove("app") }
  }

  @Test func aSuiteOfALowerLayerIsRemovedUntilItHasAnotherKeyThere() throws {
    engine.replace("fleet:all::app", with: ["a": .integer(1)])
    let suites = try suites()
    #expect(throws: StoreError.notEmpty) { try suites.remove("app") }
    try set(suites, "a", nil)
    #expect(try suites.suiteNames() == ["app"])
    try suites.remove("app")
    #expect(try suites.suiteNames().isEmpty && suites.suites().isEmpty)
    #expect(try suites.stamp(of: "app") == nil && suites.read("app") == nil)
    #expect(throws: StoreError.notFound) { try set(suites, "b", .integer(1)) }
    #expect(throws: StoreError.notFound) { try suites.remove("app") }
    engine.replace("host:x::other", with: ["a": .integer(5)])
    #expect(throws: StoreError.self, "it would take the keys of the layers below") {
      try suites.rename("other", to: "app")
    }
    // Others see it as before, and those who have the same layers see it go.
    #expect(try values(self.suites(writing: "fleet/web"))?.isEmpty == true)
    #expect(try self.suites().stamp(of: "app") == nil)
    #expect(suites.suites(stored: "host:x::") == ["app"])
    // With a new key below it is there again, without the one that was removed.
    engine.replace("fleet:all::app", with: ["a": .integer(1), "b": .integer(2)])
    #expect(try values(suites) == ["b": .integer(2)])
    #expect(Set(try suites.suiteNames()) == ["app", "other"])
    engine.replace("fleet:all::app", with: ["a": .integer(1)])
    #expect(try suites.stamp(of: "app") == nil)
    // Made again, it is empty.
    _ = try suites.create("app")
    #expect(try values(suites)?.isEmpty == true)
    #expect(try engine.read("host:x::") == nil)
  }

  /// The layer below has lost the suite since: what stands for its removed keys holds nothing up.
  @Test func tombstonesOfASuiteThatIsGoneAreNoKeys() throws {
    engine.replace("fleet:all::u", with: ["a": .integer(1)])
    engine.replace("fleet:all::w", with: ["a": .integer(1)])
    let suites = try suites()
    for suite: ExactString in ["u", "w"] {
      _ = try suites.update(suite, known: nil) { $0.settings["a"] = nil }
    }
    try suites.remove("w")
    for suite: ExactString in ["u", "w"] {
      engine.replace(ExactString("fleet:all::\(suite.string)"), with: [:])
      try engine.remove(ExactString("fleet:all::\(suite.string)"))
    }
    // A suite can take the name of one that was removed.
    _ = try suites.create("z")
    _ = try suites.update("z", known: nil) { $0.settings["k"] = Setting(.integer(1)) }
    try suites.rename("z", to: "w")
    #expect(try suites.read("w")?.settings.keys == ["k"])
    _ = try suites.update("w", known: nil) { $0.settings["k"] = nil }
    try suites.remove("w")
    try suites.remove("u")
    #expect(try suites.suiteNames().isEmpty)
    #expect(try engine.suites().isEmpty)
  }

  /// One that was removed and shows again is there, also when its last key goes.
  @Test func aSuiteThatShowsAgainStays() throws {
    engine.replace("fleet:all::x", with: ["a": .integer(1)])
    let suites = try suites()
    _ = try suites.update("x", known: nil) { $0.settings["a"] = nil }
    try suites.remove("x")
    engine.replace("fleet:all::x", with: ["a": .integer(1), "b": .integer(2)])
    _ = try suites.update("x", known: nil) { $0.settings["b"] = nil }
    #expect(try suites.read("x")?.settings.isEmpty == true)
    try suites.remove("x")
    #expect(try suites.stamp(of: "x") == nil)
  }

  @Test func aResetShowsTheLayersBelow() throws {
    engine.replace("fleet:all::app", with: ["a": .integer(1), "b": .integer(1), "c": .integer(1)])
    let suites = try suites()
    try set(suites, "a", .integer(2))
    try set(suites, "b", nil)
    try set(suites, "own", .integer(2))
    #expect(throws: StoreError.notFound) { _ = try suites.reset("x", in: "app") }
    #expect(throws: StoreError.notFound) { _ = try suites.reset(nil, in: "x") }
    // Its only value would go.
    #expect(throws: StoreError.self) { _ = try suites.reset("own", in: "app") }
    #expect(try suites.reset("c", in: "app") == 0)
    #expect(try suites.reset("a", in: "app") == 1)
    #expect(try values(suites) == ["a": .integer(1), "c": .integer(1), "own": .integer(2)])
    try set(suites, "a", .integer(3))
    #expect(try suites.reset(nil, in: "app") == 2)
    #expect(
      try values(suites) == ["a": .integer(1), "b": .integer(1), "c": .integer(1), "own": .integer(2)])
    try set(suites, "own", nil)
    #expect(try suites.reset(nil, in: "app") == 0)
    #expect(try engine.read("host:x::app") == nil, "an empty suite would stay when those below go")
    // Of a suite that was removed.
    for key: ExactString in ["a", "b", "c"] { try set(suites, key, nil) }
    try suites.remove("app")
    #expect(try suites.reset(nil, in: "app") == 3)
    #expect(try values(suites) == ["a": .integer(1), "b": .integer(1), "c": .integer(1)])
    #expect(try engine.read("host:x::") == nil)
    // A key that a layer above has does not show.
    engine.replace("host:x::app", with: ["a": .integer(9)])
    #expect(throws: StoreError.self) { _ = try self.suites(writing: "fleet/web").reset("a", in: "app") }
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
