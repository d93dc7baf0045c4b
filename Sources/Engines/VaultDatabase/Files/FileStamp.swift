import Platform
import Synchronization
import VaultRecords

/// Which file has a path now, and when it was written to last.
package struct FileStamp: Equatable {
  private let id: FileID
  package let size: Int64
  private let modified: SystemTime

  /// stat(2), which follows links as SQLite does; nil: no file has the path.
  package init?(_ path: String) {
    guard let status = try? Files.status(path) else { return nil }
    id = status.id
    size = status.size
    modified = status.modified
  }

  /// The two are of one file, whatever was written to it in between.
  func isSameFile(as other: FileStamp) -> Bool {
    id == other.id
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
  var isTouched: Bool { isOther(FileStamp(path)) }

  func isOther(_ present: FileStamp?) -> Bool { present != stamp.withLock { $0 } }

  func note() { note(FileStamp(path)) }

  func note(_ present: FileStamp?) { stamp.withLock { $0 = present } }
}
