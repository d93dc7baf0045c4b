public import Model
import Platform
import Store

// A fold writes the file of a suite with what only its journal has.

extension PropertyListFolder {
  /// The next version of a file.
  struct Fold {
    /// The file and the journal that it is made of.
    let stamp: SuiteStamp
    let version: SuiteVersion
    /// For the next commit, where all settings are known.
    var text: (EncodedSuite, SharedDictionary<Setting>)?
  }

  /// Writes the file of a suite with what only its journal has, so that programs with Foundation see it. Nothing where the
  /// file has everything.
  ///
  /// - Throws: `wouldWait`, `unreachable` where another process holds the suite's lock; `noSpace`, `readOnly`.
  public func fold(_ suite: ExactString) throws(StoreError) {
    for _ in 0..<10 {
      if try fold(suite, .tenSeconds) { return }
    }
  }

  /// False: another program was faster.
  func fold(_ suite: ExactString, _ patience: SuiteLock.Patience) throws(StoreError) -> Bool {
    let last = journals.state(of: suite)?.stamp
    guard let file = SuiteFile(folder: folder, suite: suite), file.journal.stamp != nil else {
      journals.forget(suite, last)
      return true
    }
    // Of a suite that was moved away, there is nothing to write.
    guard try file.status() != nil else {
      journals.forget(suite, last)
      return true
    }
    guard let fold = try nextVersion(of: file) else { return true }
    let target = try file.target()
    if let reason = file.readOnlyReason(of: target) { throw .readOnly(reason: reason) }
    let (stamp, version) = (fold.stamp, fold.version)
    guard let journal = stamp.journal else { return true }
    guard version.bytes.count <= SuiteFile.largest else { throw .tooLarge(limit: SuiteFile.largest) }
    let lock = try SuiteLock(target, patience)
    guard lock.status.stamp == stamp.withoutJournal, var locked = try file.journal.lock(),
      locked.stamp.size >= journal.size
    else {
      // Another program has written the file: the next one merges.
      journals.forget(suite, journal)
      return false
    }
    // After a power cut the file must not be newer than the journal: what the journal then lacks would seem to be older.
    try file.journal.synchronize()
    guard let folded = try commit(version, over: lock, to: target) else { return false }
    let content = JournalFold(
      from: FileVersion(stamp), to: FileVersion(folded), end: UInt64(clamping: journal.size))
    let record = JournalRecord(time: version.time, content: .fold(content))
    let known = locked.stamp
    try locked.append(record)
    journals.change(suite) { state in
      state.take(record, 0)
      if state.stamp == known { state.stamp = locked.stamp }
      state.contents?.stamp?.moveFile(to: folded, state.stamp)
      if state.pending.isEmpty { state.contents = nil }
    }
    if let (text, settings) = fold.text {
      texts.keep(EncodedSuiteCache.Kept(stamp: folded, text: text, settings: settings), of: suite)
    }
    return true
  }

  /// The file with what the journal has beyond it; nil: it has everything.
  private func nextVersion(of file: SuiteFile) throws(StoreError) -> Fold? {
    if journals.state(of: file.suite)?.contents == nil {
      switch try foldByPlaces(file) {
      case .nothing(let end):
        journals.change(file.suite) { state in state.pending = state.pending.filter { $0.value > end } }
        return nil
      case .version(let fold): return fold
      case .unknown: break
      }
    }
    // The file has the time of the last commit in it: one that comes meanwhile is later.
    guard let (contents, time) = try unfolded(file), let stamp = contents.stamp else { return nil }
    let text = try encoded(contents.settings, of: file.suite, over: stamp.withoutJournal)
    let bytes =
      text?.document ?? PropertyLists.binary(.dictionary(contents.settings.mapValues(\.value).dictionary))
    let version = SuiteVersion(bytes: bytes, time: time, showsDamage: text != nil)
    return Fold(stamp: stamp, version: version, text: text.map { ($0, contents.settings) })
  }

  /// The contents of a suite whose file lacks something, with the time of the last commit; nil: it has everything.
  private func unfolded(_ file: SuiteFile) throws(StoreError) -> (SuiteContents, Timestamp)? {
    // Another process may have folded it, or committed more.
    _ = try contents(of: file, since: journals.state(of: file.suite)?.contents)
    guard let state = journals.state(of: file.suite), let contents = state.contents else { return nil }
    return (contents, state.lastCommit)
  }

  private func commit(
    _ version: SuiteVersion, over lock: borrowing SuiteLock, to target: String
  ) throws(StoreError) -> SuiteStamp? {
    let commits = SuiteCommits.to(target)
    do throws(StoreError) {
      return try commits.commit(version, over: lock)
    } catch {
      // The version before gives back its room.
      guard error.isOutOfSpace, try commits.settle() else { throw error }
      return try commits.commit(version, over: lock)
    }
  }
}

extension SuiteStamp {
  fileprivate var withoutJournal: SuiteStamp {
    var stamp = self
    stamp.journal = nil
    return stamp
  }

  fileprivate mutating func moveFile(to file: SuiteStamp, _ journal: JournalStamp) {
    self = file
    self.journal = journal
  }
}
