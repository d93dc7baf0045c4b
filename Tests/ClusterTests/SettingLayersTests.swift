import Cluster
import Model
import Store
import Testing

@Suite(.timeLimit(.minutes(1))) struct SettingLayersTests {
  private func layer(_ name: String, _ values: [ExactString: SettingValue]) -> SettingLayers.Layer {
    SettingLayers.Layer(name, SharedDictionary(values.mapValues { Setting($0) }))
  }

  private var layers: SettingLayers {
    SettingLayers([
      layer("fleet/all", ["a": .integer(1), "b": .integer(1), "c": .integer(1)]),
      layer("fleet/web", ["b": .integer(2), "c": SettingLayers.tombstone, "d": .integer(2)]),
      layer("host/x", ["d": .integer(3)]),
    ])
  }

  private func values(_ settings: SharedDictionary<Setting>) -> [ExactString: SettingValue] {
    settings.mapValues(\.value).dictionary
  }

  @Test func theLastLayerThatHasAKeyWins() {
    #expect(values(layers.settings) == ["a": .integer(1), "b": .integer(2), "d": .integer(3)])
    #expect(["a", "b", "c", "d", "e"].map(layers.origin) == ["fleet/all", "fleet/web", nil, "host/x", nil])
    #expect(values(SettingLayers([layer("one", ["x": SettingLayers.tombstone])]).settings).isEmpty)
    #expect(SettingLayers([]).settings.isEmpty)
  }

  @Test func aChangeShowsAfterIt() throws {
    var new = layers.settings
    new["a"] = Setting(.integer(9))
    new["b"] = nil
    new["c"] = Setting(.integer(9))
    new["d"] = nil
    new["e"] = Setting(.integer(9))
    let changed = try layers.changing(to: new, in: "host/x")
    // `d` is in a lower layer too, as `b` is.
    #expect(
      values(changed) == [
        "a": .integer(9), "b": SettingLayers.tombstone, "c": .integer(9), "d": SettingLayers.tombstone,
        "e": .integer(9),
      ])
    var after = layers.layers
    after[2].settings = changed
    #expect(values(SettingLayers(after).settings) == ["a": .integer(9), "c": .integer(9), "e": .integer(9)])
  }

  @Test func aKeyOfOneLayerAloneGoesWithoutATrace() throws {
    var new = layers.settings
    new["a"] = nil
    #expect(try values(layers.changing(to: new, in: "fleet/all")) == ["b": .integer(1), "c": .integer(1)])
  }

  @Test func aChangeThatWouldNotShowIsRefused() {
    var new = layers.settings
    new["d"] = Setting(.integer(9))
    expect(.notPermitted(reason: "")) { _ = try layers.changing(to: new, in: "fleet/web") }
    expect(.notFound) { _ = try layers.changing(to: new, in: "fleet/other") }
    new = layers.settings
    new["x"] = Setting(SettingLayers.tombstone)
    expect(.invalidValue(reason: "")) { _ = try layers.changing(to: new, in: "host/x") }
  }

  @Test func layersOfAClusterAreChangedOneByOne() throws {
    let store = try TestStore()
    let suites = try store.suites()
    defer { suites.close() }
    for name in ["fleet", "host"] as [ExactString] { _ = try suites.create(name) }
    try suites.set("a", .integer(1), in: "fleet")
    func read() throws -> SettingLayers {
      SettingLayers(
        try ["fleet", "host"].map {
          SettingLayers.Layer($0, try #require(try suites.read(ExactString($0))).settings)
        })
    }
    let before = try read()
    var new = before.settings
    new["a"] = nil
    new["b"] = Setting(.integer(2))
    let changed = try before.changing(to: new, in: "host")
    _ = try suites.update("host", known: nil) { $0.settings = changed }
    #expect(try values(read().settings) == ["b": .integer(2)])
    #expect(try suites.value("a", in: "fleet") == .integer(1), "the lower layer is as it was")
  }
}
