import ClusterRecords
import Model
import Store
import VaultRecords

/// The values that settings of a suite had, by the entries that hold them. A change of many settings makes one entry.
struct SuiteVersions: Sendable {
  /// A version of a setting, by its place in an entry.
  private struct Holder {
    var id: ItemKey
    var index: Int
    var number: UInt64
  }

  private(set) var entries: [ItemKey: [SettingVersionRecord]] = [:]
  /// The versions of each setting, the oldest first.
  private var holders: [ExactString: [Holder]] = [:]

  mutating func put(_ id: ItemKey, _ versions: [SettingVersionRecord]) {
    remove(id)
    entries[id] = versions
    for (index, version) in versions.enumerated() {
      var known = holders[version.setting.name] ?? []
      let place = known.firstIndex { $0.number > version.number } ?? known.endIndex
      known.insert(Holder(id: id, index: index, number: version.number), at: place)
      holders[version.setting.name] = known
    }
  }

  mutating func remove(_ id: ItemKey) {
    guard let versions = entries.removeValue(forKey: id) else { return }
    for version in versions {
      holders[version.setting.name]?.removeAll { $0.id == id }
      if holders[version.setting.name]?.isEmpty == true { holders[version.setting.name] = nil }
    }
  }

  /// The settings of which versions are there.
  var names: [ExactString] { Array(holders.keys) }

  private func record(_ holder: Holder) -> SettingVersionRecord? { entries[holder.id]?[holder.index] }

  /// The versions of a setting, the oldest first.
  func versions(of name: ExactString) -> [SettingVersionRecord] {
    (holders[name] ?? []).compactMap(record)
  }

  /// When the last one of them was replaced; nil: there is none.
  func lastReplaced(_ name: ExactString) -> Timestamp? {
    (holders[name]?.last).flatMap(record)?.replaced
  }

  /// Those of them that are still to be kept.
  func kept(
    of name: ExactString, _ retention: HistoryRetention, at now: Timestamp
  ) -> [SettingVersionRecord] {
    versions(of: name).suffix(retention.versions).filter { !retention.isOver($0.replaced, at: now) }
  }

  /// Entries of which nothing is to be kept where each of these settings gets one more version. Each is looked at once.
  func surplus(
    _ names: some Sequence<ExactString>, adding: Int, _ retention: HistoryRetention, at now: Timestamp,
    atMost limit: Int
  ) -> [ItemKey] {
    var smaller = retention
    smaller.versions = max(0, retention.versions - adding)
    let growing = Set(names)
    var needed: [ItemKey: Bool] = [:]
    var surplus: [ItemKey] = []
    for name in growing {
      for holder in holders[name] ?? [] {
        guard surplus.count < limit else { return surplus }
        if let isNeeded = needed[holder.id] {
          if isNeeded { break }
          continue
        }
        let isNeeded = (entries[holder.id] ?? []).contains { version in
          let retention = growing.contains(version.setting.name) ? smaller : retention
          return isKept(version, retention, at: now)
        }
        needed[holder.id] = isNeeded
        if isNeeded { break }
        surplus.append(holder.id)
      }
    }
    return surplus
  }

  private func isKept(
    _ version: SettingVersionRecord, _ retention: HistoryRetention, at now: Timestamp
  ) -> Bool {
    guard !retention.isOver(version.replaced, at: now) else { return false }
    let later = (holders[version.setting.name] ?? []).count { $0.number > version.number }
    return later < retention.versions
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
