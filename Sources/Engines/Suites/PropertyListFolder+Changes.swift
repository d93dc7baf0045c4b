public import Model
import Platform
public import Store

extension PropertyListFolder {
  /// How often a change is begun again because a program that does not lock was faster.
  private static let attempts = 100

  /// - Note: `body` runs again where a program that does not lock changed the suite meanwhile.
  public func update(
    _ suite: ExactString, known: SuiteContents?,
    _ body: (inout SuiteContents) throws(StoreError) -> Void
  ) throws(StoreError) -> SuiteContents {
    guard let file = SuiteFile(folder: folder, suite: suite) else { throw .notFound }
    for _ in 0..<Self.attempts {
      switch try attempt(file, known, body) {
      case .stored(let contents): return contents
      case .outrun: continue
      case .unfolded: _ = try fold(suite, patience)
      }
    }
    throw .unreachable(reason: "another program changes the suite all the time")
  }

  private enum Attempt {
    case stored(SuiteContents)
    /// A program that does not lock was faster.
    case outrun
    /// The file has to be written as a whole, and the journal holds what it does not have.
    case unfolded
  }

  private func attempt(
    _ file: SuiteFile, _ known: SuiteContents?, _ body: (inout SuiteContents) throws(StoreError) -> Void
  ) throws(StoreError) -> Attempt {
    let target = try file.target()
    let lock = try SuiteLock(target, patience)
    guard let old = try present(file, target, lock.status, known) else { return .outrun }
    if let reason = old.readOnly { throw .readOnly(reason: reason) }
    var new = old
    try body(&new)
    let change = SuiteChange(from: old.settings, to: new, at: Timestamp.now)
    guard change.isOfValues else {
      times.record(change, of: file.suite)
      return .stored(old.after(change, old.stamp))
    }
    try requireRoom(toKeep: change, over: old.settings, of: file.suite)
    if target == file.path, let commit = journaled(change, of: file, since: old, lock.status) {
      guard let stamp = try append(commit, change, of: file, over: old) else { return .outrun }
      times.record(change, of: file.suite)
      historyFiles.record(change, over: old.settings, of: file.suite)
      return .stored(old.after(change, stamp))
    }
    if old.stamp?.journal != nil, try !removeJournal(of: file, target, lock) { return .unfolded }
    guard let stamp = try write(change, of: file.suite, over: lock, to: target) else { return .outrun }
    times.record(change, of: file.suite)
    historyFiles.record(change, over: old.settings, of: file.suite)
    return .stored(old.after(change, stamp))
  }

  /// Before values are replaced or removed: room for what is kept of them; for removed ones also in the reserve.
  ///
  /// - Throws: `noRoomForVersion`, `noRoomForReplaced`.
  private func requireRoom(
    toKeep change: SuiteChange, over old: SharedDictionary<Setting>, of suite: ExactString
  ) throws(StoreError) {
    guard !historyFiles.hasRoom(toKeep: change, over: old, of: suite) else { return }
    guard change.isRemoval else { throw .noRoomForReplaced }
    reserve.giveUp()
    guard historyFiles.hasRoom(toKeep: change, over: old, of: suite) else { throw .noRoomForVersion }
  }

  /// The stored version; nil: it changed since `status` was asked.
  private func present(
    _ file: SuiteFile, _ target: String, _ status: FileStatus, _ known: SuiteContents?
  ) throws(StoreError) -> SuiteContents? {
    let stamp = stamp(of: file, status)
    if var known, known.stamp == stamp {
      known.readOnly = file.readOnlyReason(of: target)
      return known
    }
    guard let contents = try contents(of: file, since: known) else { throw .notFound }
    if contents.stamp == stamp { return contents }
    if let whole = contents.stamp?.journal, let journal = stamp.journal {
      try mend(file.journal, journal, after: whole)
    }
    return nil
  }

  /// nil: a program that does not lock was faster.
  private func write(
    _ change: SuiteChange, of suite: ExactString, over lock: borrowing SuiteLock, to target: String
  ) throws(StoreError) -> SuiteStamp? {
    let text = try encoded(change.settings, of: suite, over: lock.status.stamp) { () throws(StoreError) in
      try PropertyLists.check(.dictionary(change.differingValues))
    }
    let bytes = text?.document ?? PropertyLists.binary(.dictionary(change.values))
    guard bytes.count <= SuiteFile.largest else { throw .tooLarge(limit: SuiteFile.largest) }
    let version = SuiteVersion(bytes: bytes, time: change.time, showsDamage: text != nil)
    defer { reserve.restore(for: bytes.count) }
    let commits = SuiteCommits.to(target)
    let stamp: SuiteStamp?
    do throws(StoreError) {
      stamp = try commits.commit(version, over: lock)
    } catch {
      guard error.isOutOfSpace else { throw error }
      stamp = try commitOnFullDisk(version, change, commits, lock, error)
    }
    if let text, let stamp {
      texts.keep(EncodedSuiteCache.Kept(stamp: stamp, text: text, settings: change.settings), of: suite)
    }
    return stamp
  }

  /// Commits in the room that the version before gives back and, where keys are only removed, that of the reserve; an
  /// empty suite needs none.
  private func commitOnFullDisk(
    _ version: SuiteVersion, _ change: SuiteChange, _ commits: SuiteCommits, _ lock: borrowing SuiteLock,
    _ error: StoreError
  ) throws(StoreError) -> SuiteStamp? {
    var error = error
    do throws(StoreError) {
      if try commits.settle() { return try commits.commit(version, over: lock) }
    } catch let again {
      error = again
    }
    guard error.isOutOfSpace, change.isRemoval else { throw error }
    reserve.giveUp()
    do throws(StoreError) {
      return try commits.commit(version, over: lock)
    } catch {
      guard error.isOutOfSpace, change.settings.isEmpty else { throw error }
      return try commits.overwrite(version, lock)
    }
  }

  /// The text of settings, made of that of the file `old` where it is known; nil: there is none in XML that may be
  /// written. `check` refuses what no property list can hold.
  func encoded(
    _ settings: SharedDictionary<Setting>, of suite: ExactString, over old: SuiteStamp,
    check: () throws(StoreError) -> Void = {}
  ) throws(StoreError) -> EncodedSuite? {
    var text: EncodedSuite?
    if var kept = texts.take(suite, old) {
      try check()
      let differing = settings.differences(from: kept.settings).map(\.key)
      guard kept.text.apply(differing, of: settings) else { return nil }
      text = kept.text
    } else {
      try PropertyLists.check(.dictionary(settings.mapValues(\.value).dictionary))
      text = EncodedSuite(settings)
    }
    guard let text, text.byteCount + 1024 <= SuiteFile.largest else { return nil }
    return text
  }

  /// Writes an empty property list, and makes the folder if it is missing.
  ///
  /// - Throws: `exists`, `invalidName`, `nameTooLong`, `noSpace`, `readOnly`, `system`.
  public func create(_ suite: ExactString) throws(StoreError) -> SuiteContents {
    try SuiteFile.check(suite)
    guard let file = SuiteFile(folder: folder, suite: suite) else { throw .nameTooLong }
    try SuiteFiles.makeFolder(folder)
    guard try SuiteFiles.status(file.path, follow: false) == nil else { throw .exists }
    // Of a suite of this name that another program has removed.
    try file.journal.lock()?.remove()
    let bytes = try propertyLists.xml(.dictionary([:]))
    let version = SuiteVersion(bytes: bytes, time: Timestamp.now, showsDamage: true)
    guard let stamp = try SuiteCommits.to(file.path).create(version) else {
      throw .unreachable(reason: "another process removes what is written")
    }
    times.forget(suite)
    return SuiteContents(stamp: stamp)
  }

  /// Of a link the link goes; the file that it leads to stays.
  public func remove(_ suite: ExactString) throws(StoreError) {
    let file = try existing(suite)
    try endJournal(of: file)
    let target = try file.target()
    let lock = try SuiteLock(target, patience)
    defer { _ = lock }
    try SuiteCommits.to(target).synchronize()
    guard let contents = try contents(of: file) else { throw .notFound }
    if let reason = contents.readOnly { throw .readOnly(reason: reason) }
    guard contents.settings.isEmpty else { throw .notEmpty }
    try SuiteFiles.remove(file.path)
    times.forget(suite)
    historyFiles.removeMark(suite)
    // Nothing is left that `synchronize` could be asked for.
    try SuiteFiles.synchronizeNames(in: folder)
  }

  /// Renames the file under its lock.
  ///
  /// - Throws: `notFound`, `exists`, `invalidName`, `nameTooLong`, `readOnly`.
  public func rename(_ suite: ExactString, to name: ExactString) throws(StoreError) {
    try SuiteFile.check(name)
    let file = try existing(suite)
    guard suite != name, let renamed = SuiteFile(folder: folder, suite: name) else { return }
    try endJournal(of: file)
    let target = try file.target()
    let lock = try SuiteLock(target, patience)
    defer { _ = lock }
    if let reason = file.readOnlyReason(of: target) { throw .readOnly(reason: reason) }
    try SuiteCommits.to(target).synchronize()
    // Values that are changed under the new name are kept, or not, as under the former one. `exists` must not have changed the mark.
    guard try SuiteFiles.status(renamed.path, follow: false) == nil else { throw .exists }
    try historyFiles.moveMark(suite, to: name)
    try SuiteFiles.renameKeeping(file.path, to: renamed.path)
    times.move(suite, to: name)
    historyFiles.move(suite, to: name)
  }
}
