import Glibc
import Synchronization

/// Which file has a path now, and when it was written to last.
struct FileStamp: Equatable {
  private let device: UInt64
  private let inode: UInt64
  let size: Int64
  private let seconds: Int64
  private let nanoseconds: Int64

  /// stat(2), which follows links as SQLite does; nil: no file has the path.
  init?(_ path: String) {
    var status = stat()
    guard unsafe stat(path, &status) == 0 else { return nil }
    (device, inode, size) = (UInt64(status.st_dev), UInt64(status.st_ino), Int64(status.st_size))
    (seconds, nanoseconds) = (Int64(status.st_mtim.tv_sec), Int64(status.st_mtim.tv_nsec))
  }

  /// The two are of one file, whatever was written to it in between.
  func isSameFile(as other: FileStamp) -> Bool {
    device == other.device && inode == other.inode
  }
}

/// The stamp of a file as this process last wrote or checked it.
final class KnownStamp: Sendable {
  private let path: String
  private let stamp: Mutex<FileStamp?>

  init(_ path: String, _ stamp: FileStamp?) {
    self.path = path
    self.stamp = Mutex(stamp)
  }

  /// Whether something else has written to the file since, or another file has its path.
  var isTouched: Bool { FileStamp(path) != stamp.withLock { $0 } }

  func note() {
    let present = FileStamp(path)
    stamp.withLock { $0 = present }
  }
}
