import ClusterRecords
import Model
import Store
import VaultRecords

/// The values that settings of a suite had, by the entries that hold them.
struct SuiteVersions: Sendable {
  private(set) var entries: [ItemKey: [SettingVersionRecord]] = [:]
  /// The entries that hold a version of a setting, the oldest first.
  private var holders: [ExactString: [ItemKey]] = [:]

  mutating func put(_ id: ItemKey, _ versions: [SettingVersionRecord]) {
    remove(id)
    entries[id] = versions
    for version in versions {
      var ids = holders[version.setting.name] ?? []
      let place = ids.firstIndex { number(of: $0) > version.number } ?? ids.endIndex
      ids.insert(id, at: place)
      holders[version.setting.name] = ids
    }
  }

  mutating func remove(_ id: ItemKey) {
    guard let versions = entries.removeValue(forKey: id) else { return }
    for version in versions {
      holders[version.setting.name]?.removeAll { $0 == id }
      if holders[version.setting.name]?.isEmpty == true { holders[version.setting.name] = nil }
    }
  }

  private func number(of id: ItemKey) -> UInt64 { entries[id]?.first?.number ?? 0 }

  /// The settings of which versions are there.
  var names: [ExactString] { Array(holders.keys) }

  /// The versions of a setting, the oldest first.
  func versions(of name: ExactString) -> [SettingVersionRecord] {
    (holders[name] ?? []).flatMap { id in (entries[id] ?? []).filter { $0.setting.name == name } }
  }

  /// Those of them that are still to be kept.
  func kept(
    of name: ExactString, _ retention: HistoryRetention, at now: Timestamp
  ) -> [SettingVersionRecord] {
    versions(of: name).suffix(retention.versions).filter { !retention.isOver($0.replaced, at: now) }
  }

  /// Entries of which nothing is to be kept where each of these settings gets one more version.
  func surplus(
    _ names: some Sequence<ExactString>, adding: Int, _ retention: HistoryRetention, at now: Timestamp,
    atMost limit: Int
  ) -> [ItemKey] {
    var smaller = retention
    smaller.versions = max(0, retention.versions - adding)
    let growing = Set(names)
    var surplus: [ItemKey] = []
    for name in growing {
      for id in holders[name] ?? [] {
        guard surplus.count < limit else { return surplus }
        let isNeeded = (entries[id] ?? []).contains { version in
          let name = version.setting.name
          return kept(of: name, growing.contains(name) ? smaller : retention, at: now).contains(version)
        }
        if isNeeded { break }
        if !surplus.contains(id) { surplus.append(id) }
      }
    }
    return surplus
  }
}

/// The settings of which a process keeps nothing for some seconds, since they are removed for good; and those of which it has just kept
/// something.
struct VersionNotes: Sendable {
  private struct Key: Hashable {
    var suite: ItemKey
    var name: ExactString
  }

  /// For so long, nothing is kept of a setting that is removed for good.
  private static let purging = Duration.seconds(10)
  /// Of the changes of a setting by one process within so long, the value before the first one is kept.
  private static let gathering = Duration.seconds(1)
  private static let most = 4096

  private var purged: [Key: ContinuousClock.Instant] = [:]
  private var kept: [Key: ContinuousClock.Instant] = [:]

  mutating func purge(_ names: Set<ExactString>, of suite: ItemKey) {
    let now = ContinuousClock.now
    purged = purged.filter { $0.value + Self.purging > now }
    for name in names { purged[Key(suite: suite, name: name)] = now }
  }

  mutating func endPurge(of suite: ItemKey) { purged = purged.filter { $0.key.suite != suite } }

  mutating func keep(_ names: some Sequence<ExactString>, of suite: ItemKey) {
    if kept.count > Self.most { kept = [:] }
    for name in names { kept[Key(suite: suite, name: name)] = .now }
  }

  /// Whether a value that is replaced or removed now is kept. One that is removed is, however shortly it was there.
  func keeps(_ name: ExactString, of suite: ItemKey, isRemoval: Bool) -> Bool {
    let key = Key(suite: suite, name: name)
    if let time = purged[key], time + Self.purging > .now { return false }
    guard !isRemoval, let time = kept[key] else { return true }
    return time + Self.gathering <= .now
  }
}
