import Model
import Platform
import Store

/// The lock of a suite, held until it goes: flock(2) on the suite's own file, which every Keyhole obeys.
struct SuiteLock: ~Copyable {
  /// How long to wait for a process that holds the lock.
  enum Patience {
    case none
    /// A blocked call of the mount has to end within ten seconds.
    case tenSeconds
  }

  private static let longestPause: UInt32 = 10_000

  /// The suite's file, as it was when the lock was got.
  let file: Descriptor
  /// The file that its name led to then.
  let status: FileStatus

  /// - Throws: `notFound`; where another process holds it, `wouldWait`, or `unreachable` after ten seconds.
  init(_ target: String, _ patience: Patience = .tenSeconds) throws(StoreError) {
    let deadline = ContinuousClock.now + .seconds(10)
    var pause: UInt32 = 200
    while true {
      if let file = try Self.locked(target), let status = try Self.status(of: file, at: target) {
        self.file = file
        self.status = status
        return
      }
      if patience == .none { throw .wouldWait }
      guard ContinuousClock.now < deadline else {
        throw .unreachable(reason: "another process holds the lock of the suite")
      }
      Pause.microseconds(pause)
      pause = min(pause * 2, Self.longestPause)
    }
  }

  /// The file with its lock; nil: another process holds that.
  ///
  /// Reading is enough for a lock, and tells no watcher of a writer; NFS alone wants to write.
  private static func locked(_ target: String) throws(StoreError) -> Descriptor? {
    let file = try SuiteFile.open(target)
    do throws(Errno) {
      guard try file.tryLock() else { return nil }
    } catch .EBADF {
      let file = try SuiteFile.open(target, .readingAndWriting)
      guard try SuiteFiles.call("flock", { () throws(Errno) in try file.tryLock() }) else { return nil }
      return file
    } catch {
      throw StoreError(ofSuite: error, "flock")
    }
    return file
  }

  /// The status of the file that has the name now; nil: another file than the locked one, which was replaced while we waited.
  private static func status(
    of file: borrowing Descriptor, at target: String
  ) throws(StoreError) -> FileStatus? {
    guard let present = try SuiteFiles.status(target) else { throw .notFound }
    let locked = try file.suiteStatus()
    let isSame = present.id == locked.id
    return isSame ? present : nil
  }
}
