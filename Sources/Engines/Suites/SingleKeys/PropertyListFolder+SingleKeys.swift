import Model
import Platform
import Store

extension PropertyListFolder {
  /// The contents with one key, if it is there; nil: the suite has to be read whole, or there is none.
  func contents(of suite: ExactString, only key: ExactString) throws(StoreError) -> SuiteContents? {
    guard let file = SuiteFile(folder: folder, suite: suite) else { return nil }
    return try select(key, in: file)?.contents
  }

  /// Contents with one key.
  private struct Selected {
    var contents: SuiteContents
    /// The number of keys in the file.
    var count: Int
    /// The time of the last change of the suite.
    var lastChange: Timestamp
  }

  private func select(_ key: ExactString, in file: SuiteFile) throws(StoreError) -> Selected? {
    for _ in 0..<10 {
      guard let status = try file.status(),
        let content = try file.readBytes(status), let found = FoundKeys(of: [key], in: content)
      else { return nil }
      let journal = try file.journal.read()
      // A fold between the two readings.
      if journal != nil, try file.status()?.stamp != status.stamp { continue }
      let time = status.stamp.modified
      let (commits, isExact) = journal?.unfolded(by: FileVersion(status.stamp)) ?? ([], true)
      let records = commits.map { $0.record.only(key) }
      var contents = SuiteContents(stamp: status.stamp, readOnly: file.readOnlyReason(of: try file.target()))
      contents.settings[key] = found.values[key].map { Setting($0, modified: time) }
      if isExact { contents.settings.apply(records) } else { contents.settings.merge(records, into: time) }
      contents.stamp?.journal = journal?.stamp
      return Selected(
        contents: contents, count: found.count, lastChange: commits.last?.record.time ?? time)
    }
    return nil
  }

  /// Changes one key by a record of the journal; nil: that can't be, and nothing was changed.
  func update(
    _ suite: ExactString, only key: ExactString,
    _ body: (inout SuiteContents) throws(StoreError) -> Void
  ) throws(StoreError) -> SuiteContents? {
    guard let file = SuiteFile(folder: folder, suite: suite), let status = try file.status(),
      status.size >= journals.smallestFile
    else { return nil }
    let target = try file.target()
    guard target == file.path else { return nil }
    let lock = try SuiteLock(target, patience)
    guard let selected = try select(key, in: file) else { return nil }
    let old = selected.contents
    // Another program was faster, or a crash has left something behind the last record.
    guard old.stamp == stamp(of: file, lock.status),
      times.hasAll(of: suite, until: selected.lastChange)
    else { return nil }
    if let reason = old.readOnly { throw .readOnly(reason: reason) }
    var new = old
    try body(&new)
    let change = SuiteChange(from: old.settings, to: new, at: Timestamp.now)
    guard change.differing.isSubset(of: [key]) else { return nil }
    if change.isOfValues {
      guard let record = journaled(change, of: file, since: old, lock.status) else { return nil }
      return try append(record, change, of: file, over: selected)
    }
    times.record(change, of: suite, keys: selected.count)
    return old.after(change, old.stamp)
  }

  /// nil: another program was faster.
  private func append(
    _ record: JournalRecord, _ change: SuiteChange, of file: SuiteFile, over selected: Selected
  ) throws(StoreError) -> SuiteContents? {
    let old = selected.contents
    guard let stamp = try append(record, change, of: file, over: old, isWhole: false) else { return nil }
    times.record(change, of: file.suite, keys: selected.count + 1)
    historyFiles.record(change, over: old.settings, of: file.suite)
    return old.after(change, stamp)
  }
}

extension JournalRecord {
  /// The record with the changes of one key.
  fileprivate func only(_ key: ExactString) -> JournalRecord {
    guard case .commit(let commit) = content else { return self }
    let changes = commit.changes.filter { $0.key == key }
    return JournalRecord(time: time, content: .commit(JournalCommit(changes: changes)))
  }
}
