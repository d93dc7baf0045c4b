import ClusterRecords
package import Model
import Platform
package import Store
import VaultRecords

/// The values that settings had are entries of their suite, sealed like it: one for each commit, in the same transaction.
extension ClusterSuites: VersionedSuites {
  /// The engine itself.
  package var history: (any VersionedSuites)? { self }

  package var retention: HistoryRetention? { keeping.use { $0.retention } }

  package func keep(_ retention: HistoryRetention) { keeping.use { $0.retention = retention } }

  /// - Throws: `unreachable` where the cluster does not answer and the suite was not read before; `locked`, `damaged`.
  package func versions(of suite: ExactString) throws(StoreError) -> [SettingVersion] {
    guard let id = try idWithVersions(of: suite) else { return [] }
    return try settings(of: id).withCopy { copy in kept(of: copy.view.versions) }.sorted {
      $0.number < $1.number
    }
  }

  private func kept(of versions: SuiteVersions) -> [SettingVersion] {
    let (retention, now) = (retention, Timestamp.now)
    return versions.names.flatMap { name in
      let records = retention.map { versions.kept(of: name, $0, at: now) } ?? versions.versions(of: name)
      return records.map { record in
        SettingVersion(
          number: record.number, key: record.setting.name, value: record.setting.value,
          replaced: record.replaced, changes: VersionChanges(rawValue: record.changes))
      }
    }
  }

  /// Reads all suites that were not read yet.
  ///
  /// - Throws: `unreachable`, `locked`; where a suite can't be read it counts as one of which nothing is kept.
  package func suitesWithVersions() throws(StoreError) -> [ExactString] {
    try start()
    let all = try names.withCopy { Set($0.view.ids.keys).union($0.view.removed.keys) }
    var found: [ExactString] = []
    for suite in all {
      do throws(StoreError) {
        if try !versions(of: suite).isEmpty { found.append(suite) }
      } catch {
        guard case .damaged = error else { throw error }
      }
    }
    return found
  }

  @discardableResult
  package func purge(_ suite: ExactString, _ key: ExactString?) throws(StoreError) -> Int {
    guard let id = try idWithVersions(of: suite) else { return 0 }
    let count = try purge(of: id) { key == nil || $0.setting.name == key }
    // A removed suite may have no values any more. Where it can't be removed for good now, a later call does it.
    try? removeOver()
    return count
  }

  /// The note of the keys is this process's: no other one keeps what this one removes.
  @discardableResult
  package func purge(
    _ keys: Set<ExactString>, beforeRemovalFrom suite: ExactString
  ) throws(StoreError) -> Int {
    guard let id = try id(of: suite) else { return 0 }
    keeping.use { $0.notes.purge(keys, of: id) }
    do throws(StoreError) { return try purge(of: id) { keys.contains($0.setting.name) } } catch {
      keeping.use { $0.notes.endPurge(of: id) }
      throw error
    }
  }

  package func endPurge(of suite: ExactString, isFollowed: Bool) {
    guard !isFollowed, let id = try? id(of: suite) else { return }
    keeping.use { $0.notes.endPurge(of: id) }
  }

  /// Of the suites that were read.
  @discardableResult package func prune() -> Int {
    guard let retention else { return 0 }
    let now = session.pruning.time
    let count = state.use { Array($0.loaded.keys) }.reduce(0) { count, id in
      count &+ ((try? purge(of: id) { retention.isOver($0.replaced, at: now) }) ?? 0)
    }
    try? removeOver()
    return count
  }

  /// Does nothing: the client that changes a setting keeps the value before in the same transaction.
  package func keep(
    _ values: [ExactString: SettingValue], of suite: ExactString, removed: Set<ExactString>
  ) {}

  package func keepsVersions(of suite: ExactString) -> Bool {
    guard let id = try? id(of: suite) else { return true }
    return (try? settings(of: id).withCopy { $0.head.keepsVersions }) ?? true
  }

  package func setKeepsVersions(_ keeps: Bool, of suite: ExactString) throws(StoreError) {
    guard let id = try id(of: suite) else { throw .notFound }
    try change(id) { copy in
      var plan = CollectionPlan<SuiteEntry>([])
      plan.keepsVersions = keeps
      return copy.head.keepsVersions == keeps ? nil : plan
    }
    if !keeps { try purge(of: id) { _ in true } }
  }
}

extension ClusterSuites {
  /// The amount that this process keeps of the values that it replaces.
  struct VersionKeeping {
    /// nil: nothing.
    var retention: HistoryRetention?
    var notes = VersionNotes()
    /// The value that stands for a removed key; nil: none does.
    var tombstone: SettingValue?
  }

  /// From now on a change to this value counts as the removal of a key.
  package func setTombstone(_ value: SettingValue) { keeping.use { $0.tombstone = value } }

  /// Larger values are not kept, in bytes as they are stored.
  private static let largestVersion = 64 << 10
  /// How many entries that are not to be kept any more go with a commit.
  private static let removedAtOnce = 10
  private static let purgedAtOnce = 60

  /// Adds the values that changes replace to their transaction, as far as it has room for them.
  func keepVersions(
    of changes: [SettingChange], replacing old: SharedDictionary<Setting>, on copy: VerifiedCopy<SuiteEntry>,
    of suite: ItemKey, in plan: inout CollectionPlan<SuiteEntry>
  ) throws(StoreError) {
    guard let retention, retention.keepsAny, copy.head.keepsVersions else { return }
    let (notes, tombstone) = keeping.use { ($0.notes, $0.tombstone) }
    let now = Timestamp.now
    var room = Self.largestChange
    for edit in plan.edits { room -= try edit.content?.encoded().count ?? 0 }
    var records: [SettingVersionRecord] = []
    for change in changes {
      let isRemoval = change.isRemoval(tombstone)
      guard let before = old[change.name], notes.keeps(change.name, of: suite, isRemoval: isRemoval)
      else { continue }
      if case .set(let record) = change, record.value == before.value { continue }
      // It stands for a removed key: the value before was kept then.
      if let tombstone, before.value == tombstone { continue }
      let setting = SettingRecord(name: change.name, value: before.value, modified: before.modified ?? now)
      let size = try setting.encoded().count + 64
      guard size <= Self.largestVersion, size <= room else { continue }
      room -= size
      let parts: VersionChanges = isRemoval ? .removal : .value
      let earlier = copy.view.versions.lastReplaced(change.name)
      records.append(
        SettingVersionRecord(
          number: copy.version + 1,
          replaced: .end(
            stored: before.modified, after: earlier, copy.head.valueTime, others: session.pruning.latestOther),
          changes: parts.rawValue, setting: setting))
    }
    guard !records.isEmpty else { return }
    let names = records.map(\.setting.name)
    plan.edits.append(CollectionEdit(.random(), .versions(records)))
    plan.edits += copy.view.versions.surplus(
      names, adding: 1, retention, at: session.pruning.time, atMost: Self.removedAtOnce
    ).map { CollectionEdit($0, nil) }
  }

  /// A commit that keeps these versions was made.
  func noteVersions(in plan: CollectionPlan<SuiteEntry>, of suite: ItemKey) {
    for edit in plan.edits {
      guard case .versions(let records)? = edit.content else { continue }
      keeping.use { $0.notes.keep(records.map(\.setting.name), of: suite) }
    }
  }

  /// Deletes versions. - Returns: how many.
  @discardableResult
  private func purge(
    of suite: ItemKey, where isPurged: (SettingVersionRecord) -> Bool
  ) throws(StoreError) -> Int {
    var (count, isDone) = (0, false)
    while !isDone {
      var removed = 0
      try change(suite) { copy in
        var edits: [CollectionEdit<SuiteEntry>] = []
        removed = 0
        for (id, records) in copy.view.versions.entries where edits.count < Self.purgedAtOnce {
          let rest = records.filter { !isPurged($0) }
          guard rest.count < records.count else { continue }
          removed &+= records.count - rest.count
          edits.append(CollectionEdit(id, rest.isEmpty ? nil : .versions(rest)))
        }
        isDone = edits.count < Self.purgedAtOnce
        return edits.isEmpty ? nil : CollectionPlan(edits)
      }
      count &+= removed
    }
    return count
  }

  /// Makes a commit that changes no setting; `plan` nil: nothing is to be done. It may be asked again.
  private func change(
    _ suite: ItemKey, _ plan: (VerifiedCopy<SuiteEntry>) -> CollectionPlan<SuiteEntry>?
  ) throws(StoreError) {
    try session.limited { () throws(StoreError) in
      if let readOnlyReason { throw .readOnly(reason: readOnlyReason) }
      let settings = settings(of: suite)
      try settings.withWriter { () throws(StoreError) in
        repeat {
          try settings.catchUp()
          let (made, version) = try settings.withCopy { (plan($0), $0.version) }
          guard var made else { return }
          made.changesValues = false
          guard let draft = try settings.draft(made, on: version) else { continue }
          if try settings.send(draft) == .made { return }
        } while ContinuousClock.now < session.end
        throw .unreachable(reason: "other clients change the suite all the time")
      }
    }
  }
}

extension SettingChange {
  /// Whether the key is removed, or gets the value that stands for that.
  fileprivate func isRemoval(_ tombstone: SettingValue?) -> Bool {
    switch self {
    case .set(let record): record.value == tombstone
    case .remove: true
    }
  }
}
