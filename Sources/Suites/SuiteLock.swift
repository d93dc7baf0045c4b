import Glibc
import Model
import Store

/// The lock of a suite, held until it goes: flock(2) on the suite's own file, which every Keyhole obeys.
struct SuiteLock: ~Copyable {
  /// A blocked call of the mount has to end within this time.
  private static let patience = Int64(10)
  private static let longestPause: UInt32 = 10_000

  private let file: Descriptor

  /// Waits for up to ten seconds. - Throws: `notFound`, `unreachable`.
  init(_ target: String) throws(StoreError) {
    let deadline = FileSystem.now.seconds + Self.patience
    var pause: UInt32 = 200
    while true {
      let file = try Self.open(target)
      if try file.tryLock(), try Self.isPresent(file, at: target) {
        self.file = file
        return
      }
      guard FileSystem.now.seconds < deadline else {
        throw .unreachable(reason: "another process holds the lock of the suite")
      }
      usleep(pause)
      pause = min(pause * 2, Self.longestPause)
    }
  }

  /// Reading is enough for a lock, and tells no watcher of a writer; NFS alone wants to write.
  private static func open(_ target: String) throws(StoreError) -> Descriptor {
    let file = try Descriptor(target, O_RDONLY | O_NONBLOCK | O_NOCTTY)
    do {
      _ = try file.tryLock()
    } catch .system(errno: EBADF, operation: _) {
      return try Descriptor(target, O_RDWR | O_NONBLOCK | O_NOCTTY)
    }
    return file
  }

  /// The lock is on the file that has the name now, and not on one that was replaced while we waited.
  private static func isPresent(_ file: borrowing Descriptor, at target: String) throws(StoreError) -> Bool {
    guard let present = try FileSystem.status(target) else { throw .notFound }
    let locked = try file.status
    return present.stamp.number == locked.stamp.number && present.stamp.device == locked.stamp.device
  }
}
