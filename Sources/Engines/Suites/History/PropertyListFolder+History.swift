public import Model
public import Store

extension PropertyListFolder: VersionedSuites {
  /// The folder itself: `history` in the state folder.
  public var history: (any VersionedSuites)? { self }

  /// How much this process keeps of what it changes; nil: it adds nothing.
  public var retention: HistoryRetention? { historyFiles.retention }

  /// Holds for the next change.
  public func keep(_ retention: HistoryRetention) { historyFiles.retention = retention }

  /// Reads the suite's two files.
  public func versions(of suite: ExactString) -> [SettingVersion] {
    historyFiles.versions(of: suite).map { record in
      SettingVersion(
        number: record.number, key: record.key, value: record.value, replaced: record.replaced,
        changes: record.changes)
    }
  }

  /// Reads the files of all suites.
  public func suitesWithVersions() -> [ExactString] { Array(historyFiles.suites()) }

  /// Writes the files over with zeros, and without these values again.
  @discardableResult
  public func purge(_ suite: ExactString, _ key: ExactString?) throws(StoreError) -> Int {
    try historyFiles.purge(suite, key)
  }

  /// A file beside those of the versions names the keys, by hashes, for ten seconds.
  @discardableResult
  public func purge(
    _ keys: Set<ExactString>, beforeRemovalFrom suite: ExactString
  ) throws(StoreError) -> Int {
    do throws(StoreError) { return try historyFiles.purge(keys, beforeRemovalFrom: suite) } catch {
      guard error.isOutOfSpace else { throw error }
    }
    reserve.giveUp()
    return try historyFiles.purge(keys, beforeRemovalFrom: suite)
  }

  /// Writes the file of times again, and removes the one that names keys by hashes.
  public func endPurge(of suite: ExactString, isFollowed: Bool) {
    times.dropRemoved(from: suite)
    if !isFollowed { historyFiles.removePurgedKeys(of: suite) }
  }

  /// Writes the files again of which something is outdated.
  @discardableResult public func prune() -> Int { historyFiles.prune() }

  /// As for a change by this process, unless the newest value that is kept of a key is the same.
  public func keep(
    _ values: [ExactString: SettingValue], of suite: ExactString, removed: Set<ExactString>
  ) {
    let former = values.map { key, value in
      FormerValue(key: key, value: value, changes: removed.contains(key) ? .removal : .value)
    }
    historyFiles.record(former, of: suite, at: .now, by: nil)
  }

  /// A mark beside the suite's file switches it off.
  public func keepsVersions(of suite: ExactString) -> Bool { !historyFiles.isOff(suite) }

  /// Makes or removes the mark. - Throws: the system's errors.
  public func setKeepsVersions(_ keeps: Bool, of suite: ExactString) throws(StoreError) {
    try historyFiles.setOff(!keeps, of: suite)
  }

  /// Makes the mark, and keeps what is kept. - Throws: the system's errors.
  public func endVersions(of suite: ExactString) throws(StoreError) {
    try historyFiles.makeMark(suite)
  }
}
