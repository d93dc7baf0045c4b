import Dispatch
public import Model
import Platform
import Store

// MARK: - Reading

extension PropertyListFolder {
  /// The suite that a file of the folder belongs to: `NAME.plist`, or the journal of one; nil: it belongs to none.
  public static func suite(ofFile name: String) -> ExactString? {
    var file = Substring(name)
    if file.hasPrefix("."), file.hasSuffix(SuiteFile.ending + SuiteJournal.ending) {
      file = file.dropFirst().dropLast(SuiteJournal.ending.count)
    }
    guard file.hasSuffix(SuiteFile.ending) else { return nil }
    return ExactString(String(file.dropLast(SuiteFile.ending.count)))
  }

  /// nil: there is no such file.
  func stamp(of file: SuiteFile) throws(StoreError) -> SuiteStamp? {
    try file.status().map { stamp(of: file, $0) }
  }

  func stamp(of file: SuiteFile, _ status: FileStatus) -> SuiteStamp {
    var stamp = status.stamp
    if mayHaveJournal(file.suite, status) { stamp.journal = file.journal.stamp }
    return stamp
  }

  private func mayHaveJournal(_ suite: ExactString, _ status: FileStatus) -> Bool {
    status.size >= journals.smallestFile || journals.knows(suite)
  }

  /// The contents of a suite, with times and whether it can be changed; nil: there is none.
  func contents(of file: SuiteFile, since known: SuiteContents? = nil) throws(StoreError) -> SuiteContents? {
    if let known, let contents = try contents(of: file, following: known) { return contents }
    for _ in 0..<10 {
      guard let content = try file.readWhole() else { return nil }
      let stamp = content.status.stamp
      let journal = try file.journal.read()
      // A fold between the two readings.
      if journal != nil, try file.status()?.stamp != stamp { continue }
      let (commits, isExact) = journal?.unfolded(by: FileVersion(stamp)) ?? ([], true)
      var contents = SuiteContents(stamp: stamp, readOnly: file.readOnlyReason(of: try file.target()))
      (contents.settings, contents.times) = settings(
        content.values, of: file.suite, stamp.modified, commits.map(\.record), isExact, since: known)
      guard var journal else { return contents }
      contents.stamp?.journal = journal.stamp
      journal.records = commits
      journals.note(journal, after: nil, of: file.suite, contents: contents)
      planFolding(of: file.suite)
      return contents
    }
    throw .unreachable(reason: "another program changes the suite all the time")
  }

  /// The settings of a file, with the commits that it lacks, and the times of all.
  private func settings(
    _ values: [ExactString: SettingValue], of suite: ExactString, _ fileTime: Timestamp,
    _ commits: [JournalRecord], _ isExact: Bool, since known: SuiteContents?
  ) -> (SharedDictionary<Setting>, TimesPosition?) {
    guard !commits.isEmpty else {
      return times.settings(values, of: suite, fileTime: fileTime, since: known)
    }
    var settings = SharedDictionary(uniqueKeysWithValues: values.lazy.map { ($0, Setting($1)) })
    if isExact { settings.apply(commits) } else { settings.merge(commits, into: fileTime) }
    // A time that was set after the commit is recorded with the others.
    return times.settings(
      settings.mapValues(\.value).dictionary, of: suite, fileTime: fileTime,
      commits: settings.times, since: known)
  }

  /// The contents after `known`, by the journal alone; nil: something else has changed the file, too.
  private func contents(
    of file: SuiteFile, following known: SuiteContents
  ) throws(StoreError) -> SuiteContents? {
    guard let last = known.stamp, let status = try file.status() else { return nil }
    guard last.journal != nil || mayHaveJournal(file.suite, status) else { return nil }
    var next = known
    next.readOnly = file.readOnlyReason(of: try file.target())
    next.stamp = status.stamp
    guard let portion = try file.journal.read(after: last.journal) else {
      // It was removed, because the file had everything.
      let isFolded = journals.state(of: file.suite)?.pending.isEmpty ?? true
      guard isFolded, last.journal != nil, last.isOfSameFile(as: status.stamp), file.journal.stamp == nil
      else {
        return nil
      }
      journals.forget(file.suite, last.journal)
      return next
    }
    guard portion.follow(FileVersion(last), into: &next.settings) == FileVersion(status.stamp) else {
      return nil
    }
    next.stamp?.journal = portion.stamp
    journals.note(portion, after: last.journal, of: file.suite, contents: next)
    planFolding(of: file.suite)
    return next
  }
}

extension SuiteJournal.Portion {
  /// Makes the changes of the records. Returns the file that they lead to; nil: they do not begin with `base`.
  fileprivate func follow(_ base: FileVersion, into settings: inout SharedDictionary<Setting>) -> FileVersion?
  {
    var base = base
    for (record, _) in records {
      switch record.content {
      case .commit: settings.apply([record])
      case .fold(let fold):
        guard fold.from == base else { return nil }
        base = fold.to
      }
    }
    return base
  }
}

extension SuiteFile {
  var journal: SuiteJournal { SuiteJournal(of: path) }
}

extension SuiteStamp {
  /// Whether it is the same version of the file, whatever the journal has.
  func isOfSameFile(as other: SuiteStamp) -> Bool {
    var (left, right) = (self, other)
    (left.journal, right.journal) = (nil, nil)
    return left == right
  }
}

// MARK: - Writing

extension PropertyListFolder {
  /// The change as a record of the journal; nil: the file is to be written as a whole.
  func journaled(
    _ change: SuiteChange, of file: SuiteFile, since old: SuiteContents, _ status: FileStatus
  ) -> JournalRecord? {
    guard status.size >= journals.smallestFile, change.differing.count <= 256 else { return nil }
    // Something that is no journal may have its name.
    guard file.journal.isPossible, old.stamp?.journal != nil || !Files.hasName(file.journal.path) else {
      return nil
    }
    var changes: [JournalCommit.Change] = []
    for key in change.differing {
      let (before, after) = (old.settings[key]?.value, change.settings[key])
      changes.append(
        JournalCommit.Change(
          key: key, before: before.map(StableHash.of), value: after?.value,
          modified: after?.modified == change.time ? nil : after?.modified))
    }
    let record = JournalRecord(time: change.time, content: .commit(JournalCommit(changes: changes)))
    let size = record.bytes.count
    let journal = Int(clamping: old.stamp?.journal?.size ?? 0)
    // The file that comes of it may have that size at most.
    guard size <= SuiteJournal.largestCommit, journal < SuiteJournal.largest,
      Int(clamping: status.size) + journal + size + 1024 <= SuiteFile.largest
    else { return nil }
    return record
  }

  /// nil: another process was faster. `isWhole`: `old` has all keys, so that a fold can go on from there.
  func append(
    _ record: JournalRecord, _ change: SuiteChange, of file: SuiteFile, over old: SuiteContents,
    isWhole: Bool = true
  ) throws(StoreError) -> SuiteStamp? {
    guard var stamp = old.stamp else { return nil }
    try PropertyLists.check(.dictionary(change.differingValues))
    defer { reserve.restore(for: Int(clamping: stamp.size)) }
    let known = stamp.journal
    do throws(StoreError) {
      stamp.journal = try append(record, to: file.journal, over: stamp)
    } catch {
      guard error.isOutOfSpace, change.isRemoval else { throw error }
      reserve.giveUp()
      stamp.journal = try append(record, to: file.journal, over: stamp)
    }
    guard let journal = stamp.journal else { return nil }
    let portion = SuiteJournal.Portion(records: [(record, Int(clamping: journal.size))], stamp: journal)
    journals.note(
      portion, after: known, of: file.suite, contents: isWhole ? old.after(change, stamp) : nil)
    journals.change(file.suite) { $0.isOwn = true }
    foldAtExit()
    planFolding(of: file.suite)
    planSynchronizing(of: file)
    return stamp
  }

  /// nil: another process was faster.
  private func append(
    _ record: JournalRecord, to journal: SuiteJournal, over stamp: SuiteStamp
  ) throws(StoreError) -> JournalStamp? {
    guard let known = stamp.journal else { return try journal.make(for: FileVersion(stamp), record) }
    guard var locked = try journal.lock(), locked.stamp == known else { return nil }
    // A crash has left it without its beginning.
    guard known.size > 0 else {
      try locked.remove()
      return nil
    }
    return try locked.append(record)
  }

  /// Cuts off what a crash has left behind the last whole record of a journal. Call it with the suite's lock.
  func mend(_ journal: SuiteJournal, _ stamp: JournalStamp, after whole: JournalStamp) throws(StoreError) {
    guard let locked = try journal.lock(), locked.stamp == stamp else { return }
    if whole.size == 0 { try locked.remove() } else { try locked.cutOff(after: whole) }
  }

  /// Removes the journal, where the locked file has everything. False: it does not.
  func removeJournal(
    of file: SuiteFile, _ target: String, _ lock: borrowing SuiteLock
  ) throws(StoreError) -> Bool {
    if let journal = try file.journal.lock(), let portion = try file.journal.read() {
      guard portion.unfolded(by: FileVersion(lock.status.stamp)).commits.isEmpty else { return false }
      // After a power cut the file before it could be there again, which needs the journal.
      try SuiteCommits.to(target).synchronize()
      try journal.remove()
    }
    journals.forget(file.suite, journals.state(of: file.suite)?.stamp)
    return true
  }

  /// Sees to it that the suite has no journal.
  func endJournal(of file: SuiteFile) throws(StoreError) {
    for _ in 0..<10 {
      guard file.journal.stamp != nil else { return }
      _ = try fold(file.suite, patience)
      let target = try file.target()
      if try removeJournal(of: file, target, SuiteLock(target, patience)) { return }
    }
    throw .unreachable(reason: "another program changes the suite all the time")
  }
}
