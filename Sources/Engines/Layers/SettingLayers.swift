package import Model
package import Store

/// The settings of one suite in several layers, of which the last one that has a key wins: those of a fleet, of a group, of a
/// host.
///
/// A key that a lower layer has is removed by a *tombstone* in a layer above it: a dictionary of its own, which is shown nowhere.
package struct SettingLayers: Sendable {
  /// One layer.
  package struct Layer: Sendable {
    /// As the mount option `layers=` names it: `fleet/all`.
    package var name: String
    package var settings: SharedDictionary<Setting>

    package init(_ name: String, _ settings: SharedDictionary<Setting> = [:]) {
      (self.name, self.settings) = (name, settings)
    }
  }

  /// The value that stands for a key that is removed.
  package static let tombstone = SettingValue.dictionary(["org.keyhole.layers.removed": .bool(true)])

  /// The lowest first.
  package let layers: [Layer]

  /// `layers`: the lowest first.
  package init(_ layers: [Layer]) { self.layers = layers }

  /// Every key with the value of the last layer that has it.
  package var settings: SharedDictionary<Setting> {
    var merged: SharedDictionary<Setting> = layers.first?.settings ?? [:]
    for (key, setting) in merged where setting.value == Self.tombstone { merged[key] = nil }
    for layer in layers.dropFirst() {
      for (key, setting) in layer.settings { merged[key] = setting.value == Self.tombstone ? nil : setting }
    }
    return merged
  }

  /// The same, where `merged` are those of the same layers as they were before: it costs what has changed since.
  package func settings(from before: SettingLayers, _ merged: SharedDictionary<Setting>) -> SharedDictionary<
    Setting
  > {
    guard layers.map(\.name) == before.layers.map(\.name) else { return settings }
    var changed: Set<ExactString> = []
    for (new, old) in zip(layers, before.layers) {
      for difference in new.settings.differences(from: old.settings) { changed.insert(difference.key) }
    }
    var result = merged
    for key in changed { result[key] = setting(key) }
    return result
  }

  /// The setting of a key that shows; nil: none does.
  package func setting(_ key: ExactString) -> Setting? {
    guard let setting = layers.last(where: { $0.settings[key] != nil })?.settings[key],
      setting.value != Self.tombstone
    else { return nil }
    return setting
  }

  /// The name of the layer whose value of a key shows; nil: no value does.
  package func origin(of key: ExactString) -> String? {
    guard let layer = layers.last(where: { $0.settings[key] != nil }),
      layer.settings[key]?.value != Self.tombstone
    else { return nil }
    return layer.name
  }

  /// The settings of a layer with which the suite shows other settings than now. A setting of which only the time differs stays in
  /// the layer that it is in. `shown`: what `settings` is, where that is known.
  ///
  /// - Throws: `notPermitted` for a key that a layer above has, so that the change would not show; `notFound` for a layer that is none
  ///   of these; `invalidValue` for the value that stands for a removed key.
  package func changing(
    to new: SharedDictionary<Setting>, in name: String, from shown: SharedDictionary<Setting>? = nil
  ) throws(StoreError) -> SharedDictionary<Setting> {
    guard let index = layers.firstIndex(where: { $0.name == name }) else { throw .notFound }
    var changed = layers[index].settings
    for difference in new.differences(from: shown ?? settings) {
      let key = difference.key
      let isTimeAlone = difference.after != nil && difference.after?.value == difference.before?.value
      if isTimeAlone, origin(of: key) != name { continue }
      if let reason = obstacle(toChanging: key, in: index) { throw .notPermitted(reason: reason) }
      guard difference.after?.value != Self.tombstone else {
        throw .invalidValue(reason: "this value stands for a removed key")
      }
      if let after = difference.after {
        changed[key] = after
      } else {
        changed[key] = isBelow(index, key) ? Setting(Self.tombstone) : nil
      }
    }
    return changed
  }

  /// Why a change of a key in a layer would not show; nil: it would.
  func obstacle(toChanging key: ExactString, in index: Int) -> String? {
    guard let above = layers.dropFirst(index + 1).last(where: { $0.settings[key] != nil }) else { return nil }
    return "the layer \(above.name) has this key too, and is above \(layers[index].name), to which is written"
  }

  /// The settings of a layer without a key that the layers below show, or without all of these; those that stand for removed keys go too.
  func resetting(_ key: ExactString?, in index: Int) -> SharedDictionary<Setting> {
    var settings = layers[index].settings
    let all = layers[index].settings
    for (name, setting) in all where key == nil && obstacle(toChanging: name, in: index) == nil || key == name
    {
      if setting.value == Self.tombstone || isBelow(index, name) { settings[name] = nil }
    }
    return settings
  }

  /// - Throws: `notFound` for a key that no layer has; `notPermitted` for one that no layer below shows, so that its only value would go, and for one
  ///   that a layer above has.
  func checkReset(of key: ExactString, in index: Int) throws(StoreError) {
    guard layers.contains(where: { $0.settings[key] != nil }) else { throw .notFound }
    if let reason = obstacle(toChanging: key, in: index) { throw .notPermitted(reason: reason) }
    guard isBelow(index, key) || layers[index].settings[key]?.value == Self.tombstone else {
      throw .notPermitted(
        reason: "no layer below \(layers[index].name) has this key, so that its only value would go")
    }
  }

  /// Whether the layers below one show a key.
  private func isBelow(_ index: Int, _ key: ExactString) -> Bool {
    SettingLayers(Array(layers[..<index])).origin(of: key) != nil
  }
}
