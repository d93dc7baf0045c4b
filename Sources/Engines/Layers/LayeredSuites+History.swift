package import Model
package import Store

/// The history of settings in layers is that of the layer to which changes are written: the values that it had are kept there, and are
/// put back there.
extension LayeredSuites: VersionedSuites {
  /// nil: the engine of that layer keeps no values.
  package var history: (any VersionedSuites)? { kept == nil ? nil : self }

  private var kept: (any VersionedSuites)? { top.engine.history }

  package var retention: HistoryRetention? { kept?.retention }

  package func keep(_ retention: HistoryRetention) { kept?.keep(retention) }

  /// Without those that stand for a removed key: it had no value then.
  package func versions(of suite: ExactString) throws(StoreError) -> [SettingVersion] {
    try (kept?.versions(of: top.stored(suite)) ?? []).filter { $0.value != SettingLayers.tombstone }
  }

  package func suitesWithVersions() throws(StoreError) -> [ExactString] {
    var found: [ExactString] = []
    for suite in try (kept?.suitesWithVersions() ?? []).compactMap(top.suite(stored:))
    where try !versions(of: suite).isEmpty { found.append(suite) }
    return found
  }

  @discardableResult
  package func purge(_ suite: ExactString, _ key: ExactString?) throws(StoreError) -> Int {
    try kept?.purge(top.stored(suite), key) ?? 0
  }

  @discardableResult
  package func purge(
    _ keys: Set<ExactString>, beforeRemovalFrom suite: ExactString
  ) throws(StoreError) -> Int {
    try kept?.purge(keys, beforeRemovalFrom: top.stored(suite)) ?? 0
  }

  package func endPurge(of suite: ExactString, isFollowed: Bool) {
    kept?.endPurge(of: top.stored(suite), isFollowed: isFollowed)
  }

  @discardableResult package func prune() -> Int { kept?.prune() ?? 0 }

  /// Does nothing: what others change in a layer they keep there.
  package func keep(
    _ values: [ExactString: SettingValue], of suite: ExactString, removed: Set<ExactString>
  ) {}

  package func keepsVersions(of suite: ExactString) -> Bool {
    kept?.keepsVersions(of: top.stored(suite)) ?? false
  }

  /// - Throws: `notFound` where no layer has such a suite.
  package func setKeepsVersions(_ keeps: Bool, of suite: ExactString) throws(StoreError) {
    if kept != nil, try stamp(of: suite) != nil, try top.engine.stamp(of: top.stored(suite)) == nil {
      do throws(StoreError) { _ = try top.engine.create(top.stored(suite)) } catch .exists {}
    }
    try kept?.setKeepsVersions(keeps, of: top.stored(suite))
  }
}
