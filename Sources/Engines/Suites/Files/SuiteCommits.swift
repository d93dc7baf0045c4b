import Dispatch
import Model
import Platform
import Store
import Synchronization

/// The next content of a suite's file.
struct SuiteVersion {
  let bytes: [UInt8]
  /// The moment of the commit, which becomes the file's time.
  ///
  /// A time of its own for each: the kernel's has steps of 4 ms, in which a stamp could come again.
  let time: Timestamp
  /// A part of the bytes, or zeros in place of some, can't be taken for the whole. Of the binary form they can.
  let showsDamage: Bool
}

/// The commits of this process to the file of one suite.
///
/// Waiting for the disk takes longer than all the rest of a commit. So a commit does not wait: it exchanges names
/// with the version before it (renameat2(2)), which is on the disk and stays beside the file, locked, until the
/// new one is on the disk too, 10 ms later. After a power cut in between the file is either whole, or shows that it
/// is not, and `SuiteFile.readWhole` puts the version before in its place.
///
/// Where names can't be exchanged, a version is on the disk before it gets its name.
final class SuiteCommits: Sendable {
  private struct State: ~Copyable {
    /// The last commit of this process.
    var last: SuiteStamp?
    /// The version that is on the disk, where that is not sure of the last one.
    var predecessor: Temporary?
    /// The predecessor's name is on the disk as well.
    var hasSafeNames = false
    /// Why the disk did not take the last commit, until a caller got the error.
    var failure: StoreError?
    var canExchange = true
  }

  /// When a version is brought to the disk: many commits in a row share the wait.
  private static let delay = DispatchTimeInterval.milliseconds(10)

  private let target: String
  private let state = Mutex(State())

  private init(_ target: String) {
    self.target = target
  }

  /// Puts a version in place of the locked one, in one step.
  ///
  /// - Returns: the new stamp; nil: a program that does not lock was faster, and nothing has changed.
  func commit(_ version: SuiteVersion, over lock: borrowing SuiteLock) throws(StoreError) -> SuiteStamp? {
    try state.withLock { state throws(StoreError) in
      let exchanges = state.canExchange && version.showsDamage
      if exchanges { try makeSafe(lock, &state) }
      let temporary = try Temporary(beside: target, at: version.time)
      let stamp = try temporary.write(version, like: lock.status)
      let isDone: Bool
      do throws(StoreError) {
        isDone = try exchanges ? exchange(temporary, lock, &state) : replace(temporary, lock)
      } catch .notFound {
        return nil
      }
      if isDone { state.last = stamp }
      return isDone ? stamp : nil
    }
  }

  /// Writes a version over the locked file in place, which takes no room on most disks: for a suite that loses its last
  /// key on a disk that has none left.
  ///
  /// A process that is killed in between leaves a file that is cut off. What it loses is what was to be removed.
  func overwrite(_ version: SuiteVersion, _ lock: borrowing SuiteLock) throws(StoreError) -> SuiteStamp {
    try state.withLock { state throws(StoreError) in
      let size = min(lock.status.size, Int64(version.bytes.count))
      let stamp = try SuiteFiles.call("write") { () throws(Errno) in
        let file = try Descriptor(target, [.writing, .noFollow, .nonBlocking])
        try file.truncate(to: size)
        try file.write(version.bytes)
        try file.synchronizeData()
        return try file.status.stamp
      }
      state.last = stamp
      return stamp
    }
  }

  /// Makes the file, where nothing has its name.
  ///
  /// - Returns: nil: another process took what was written for a leftover. - Throws: `exists`.
  func create(_ version: SuiteVersion) throws(StoreError) -> SuiteStamp? {
    let temporary = try Temporary(beside: target, at: version.time)
    let stamp = try temporary.write(version, like: nil)
    try temporary.synchronize()
    do throws(StoreError) {
      try SuiteFiles.renameKeeping(temporary.path, to: target)
      return stamp
    } catch .notFound {
      return nil
    }
  }

  /// Returns when the file and its name are on the disk, whichever process wrote them.
  ///
  /// - Throws: also what went wrong with the last commit since: the system tells it once only.
  func synchronize() throws(StoreError) {
    try state.withLock { state throws(StoreError) in
      if let failure = state.failure.take() { throw failure }
      try synchronize(&state)
    }
  }

  /// The same, where the last commit may not be there yet. - Returns: false: it is.
  @discardableResult
  func settle() throws(StoreError) -> Bool {
    try state.withLock { state throws(StoreError) in
      guard state.predecessor != nil else { return false }
      try synchronize(&state)
      return true
    }
  }
}

extension SuiteCommits {
  /// Sees to it that a power cut leaves a version from before this commit, whichever of its names and bytes it takes.
  private func makeSafe(_ lock: borrowing SuiteLock, _ state: inout State) throws(StoreError) {
    guard state.last == lock.status.stamp else {
      // The version of another process.
      if state.predecessor != nil { return try synchronize(&state) }
      return try SuiteFiles.call("fdatasync") { () throws(Errno) in try lock.file.synchronizeData() }
    }
    guard state.predecessor != nil, !state.hasSafeNames else { return }
    // The disk may take names in any order: that of the predecessor has to be there before another commit.
    try SuiteFiles.synchronizeNames(in: Files.folder(of: target))
    state.hasSafeNames = true
  }

  /// False: a program that does not lock was faster.
  private func exchange(
    _ temporary: consuming Temporary, _ lock: borrowing SuiteLock, _ state: inout State
  ) throws(StoreError) -> Bool {
    let kept = try SuiteFiles.call("dup") { () throws(Errno) in try Descriptor(copying: lock.file) }
    do throws(Errno) {
      try Files.exchange(temporary.path, with: target)
    } catch .EINVAL, .ENOSYS, .EOPNOTSUPP {
      state.canExchange = false
      return try replace(temporary, lock)
    } catch {
      // Each of the two names is to get another file, as by rename(2).
      throw StoreError(ofSuite: error, "rename")
    }
    guard (try? SuiteFiles.status(temporary.path))?.stamp == lock.status.stamp else {
      try SuiteFiles.call("rename") { () throws(Errno) in try Files.exchange(temporary.path, with: target) }
      return false
    }
    guard state.predecessor == nil else { return true }
    temporary.hold(kept)
    state.predecessor = consume temporary
    state.hasSafeNames = false
    settleLater()
    return true
  }

  /// False: a program that does not lock was faster.
  private func replace(
    _ temporary: consuming Temporary, _ lock: borrowing SuiteLock
  ) throws(StoreError) -> Bool {
    // Without, XFS and ext4 may have the name and no content after a power cut.
    try temporary.synchronize()
    guard try SuiteFiles.status(target)?.stamp == lock.status.stamp else { return false }
    try SuiteFiles.rename(temporary.path, to: target)
    return true
  }

  private func synchronize(_ state: inout State) throws(StoreError) {
    try SuiteFiles.synchronize(target)
    try SuiteFiles.synchronizeNames(in: Files.folder(of: target))
    state.predecessor = nil
  }
}

// MARK: - All of a process

extension SuiteCommits {
  private static let all = Mutex<[ExactString: SuiteCommits]>([:])
  private static let mostIdle = 1000

  /// The commits to a file. There is one object for it in a process: engines must know of each other's commits.
  static func to(_ target: String) -> SuiteCommits {
    let key = ExactString(target)
    return all.withLock { all in
      if let known = all[key] { return known }
      if all.count >= mostIdle { all = all.filter { !$0.value.isSettled } }
      let commits = SuiteCommits(target)
      all[key] = commits
      return commits
    }
  }

  private var isSettled: Bool { state.withLock { $0.predecessor == nil } }

  private func settleLater() {
    _ = Self.settlesAtExit
    Background.run(after: Self.delay) { [self] in
      do throws(StoreError) {
        try settle()
      } catch {
        state.withLock { $0.failure = error }
      }
    }
  }

  /// A process that ends right after a commit leaves nothing beside the file: atexit(3).
  private static let settlesAtExit: Void = {
    CurrentProcess.atExit {
      let unsettled = SuiteCommits.atExit { SuiteCommits.all.withLockIfAvailable { Array($0.values) } } ?? []
      for commits in unsettled {
        _ = SuiteCommits.atExit {
          commits.state.withLockIfAvailable { state in
            if state.predecessor != nil { try? commits.synchronize(&state) }
          }
        }
      }
    }
  }()

  /// Tries until the lock of `body` is free. Another thread may hold it while it waits for the disk; the thread that
  /// called exit(3) may hold it too, and never gives it back: so not longer than a second.
  private static func atExit<Value>(_ body: () -> Value?) -> Value? {
    for _ in 0..<1000 {
      if let value = body() { return value }
      Pause.microseconds(1000)
    }
    return nil
  }
}
