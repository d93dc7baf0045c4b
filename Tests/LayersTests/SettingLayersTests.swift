import Layers
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
    #expect(throws: StoreError.self) { _ = try layers.changing(to: new, in: "fleet/web") }
    #expect(throws: StoreError.notFound) { _ = try layers.changing(to: new, in: "fleet/other") }
    new = layers.settings
    new["x"] = Setting(SettingLayers.tombstone)
    #expect(throws: StoreError.invalidValue(reason: "this value stands for a removed key")) {
      _ = try layers.changing(to: new, in: "host/x")
    }
  }
}
