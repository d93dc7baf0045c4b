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
      let target = try file.target()
      let lock = try SuiteLock(target, patience)
      guard let old = try present(file, target, lock.status, known) else { continue }
      if let reason = old.readOnly { throw .readOnly(reason: reason) }
      var new = old
      try body(&new)
      let change = SuiteChange(from: old.settings, to: new.settings, at: Timestamp.now)
      guard let stamp = try change.isOfValues ? write(change, of: suite, over: lock, to: target) : old.stamp
      else { continue }
      times.record(change, of: suite)
      return SuiteContents(settings: change.settings, stamp: stamp)
    }
    throw .unreachable(reason: "another program changes the suite all the time")
  }

  /// The stored version; nil: it changed since `status` was asked.
  private func present(
    _ file: SuiteFile, _ target: String, _ status: FileStatus, _ known: SuiteContents?
  ) throws(StoreError) -> SuiteContents? {
    if var known, known.stamp == status.stamp {
      known.readOnly = file.readOnlyReason(of: target)
      return known
    }
    guard let contents = try contents(of: file) else { throw .notFound }
    return contents.stamp == status.stamp ? contents : nil
  }

  /// nil: a program that does not lock was faster.
  private func write(
    _ change: SuiteChange, of suite: ExactString, over lock: borrowing SuiteLock, to target: String
  ) throws(StoreError) -> SuiteStamp? {
    let encoded = try encoded(change, of: suite, over: lock.status.stamp)
    let bytes = encoded?.document ?? PropertyLists.binary(.dictionary(change.values))
    guard bytes.count <= SuiteFile.largest else { throw .tooLarge(limit: SuiteFile.largest) }
    let version = SuiteVersion(bytes: bytes, time: change.time, showsDamage: encoded != nil)
    defer { reserve.restore(for: bytes.count) }
    let commits = SuiteCommits.to(target)
    let stamp: SuiteStamp?
    do throws(StoreError) {
      stamp = try commits.commit(version, over: lock)
    } catch {
      guard error.isOutOfSpace else { throw error }
      stamp = try commitOnFullDisk(version, change, commits, lock, error)
    }
    if let encoded, let stamp { texts.keep(encoded, of: suite, stamp) }
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

  /// The new text; nil: there is none in XML that may be written.
  private func encoded(
    _ change: SuiteChange, of suite: ExactString, over old: SuiteStamp
  ) throws(StoreError) -> EncodedSuite? {
    var encoded = texts.take(suite, old)
    if encoded == nil {
      try PropertyLists.check(.dictionary(change.values))
      encoded = EncodedSuite(change.settings)
    } else {
      try PropertyLists.check(.dictionary(change.differingValues))
      if encoded?.apply(change.differing, of: change.settings) != true { return nil }
    }
    guard let encoded, encoded.byteCount + 1024 <= SuiteFile.largest else { return nil }
    return encoded
  }

  /// Writes an empty property list, and makes the folder if it is missing.
  ///
  /// - Throws: `exists`, `invalidName`, `nameTooLong`, `noSpace`, `readOnly`, `system`.
  public func create(_ suite: ExactString) throws(StoreError) -> SuiteContents {
    try SuiteFile.check(suite)
    guard let file = SuiteFile(folder: folder, suite: suite) else { throw .nameTooLong }
    try SuiteFiles.makeFolder(folder)
    guard try SuiteFiles.status(file.path, follow: false) == nil else { throw .exists }
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
    let target = try file.target()
    let lock = try SuiteLock(target, patience)
    defer { _ = lock }
    try SuiteCommits.to(target).synchronize()
    guard let contents = try contents(of: file) else { throw .notFound }
    if let reason = contents.readOnly { throw .readOnly(reason: reason) }
    guard contents.settings.isEmpty else { throw .notEmpty }
    try SuiteFiles.remove(file.path)
    times.forget(suite)
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
    let target = try file.target()
    let lock = try SuiteLock(target, patience)
    defer { _ = lock }
    if let reason = file.readOnlyReason(of: target) { throw .readOnly(reason: reason) }
    try SuiteCommits.to(target).synchronize()
    try SuiteFiles.renameKeeping(file.path, to: renamed.path)
    times.move(suite, to: name)
  }
}
