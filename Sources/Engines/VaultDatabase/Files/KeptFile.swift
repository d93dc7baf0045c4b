import Model
import Platform
import Synchronization
import VaultRecords

/// A file that SQLite may have locks on, open for reading.
///
/// It stays open as long as the file has a name: close(2) of any descriptor of a file drops all locks of fcntl(2) that
/// the process has on it, those of another connection too (https://sqlite.org/howtocorrupt.html, 2.2). Without them,
/// another process could remove the log that this one writes.
final class KeptFile: Sendable {
  let descriptor: Descriptor

  private static let files = Mutex<[KeptFile]>([])

  private init(_ descriptor: consuming Descriptor) {
    self.descriptor = descriptor
  }

  /// The file at a path, as `PrivateFile.open` opens it for reading; nil: there is none.
  static func open(_ path: String) throws(StoreError) -> KeptFile? {
    if let file = kept(path) {
      guard let status = file.status else { throw .notFound }
      try PrivateFile.check(status, path)
      return file
    }
    guard let descriptor = try PrivateFile.open(path) else { return nil }
    let file = KeptFile(descriptor)
    files.withLock { files in
      files.removeAll { $0.status.map { $0.links == 0 } ?? true }
      files.append(file)
    }
    return file
  }

  /// nil: what has the path is not open yet. A symbolic link is never.
  private static func kept(_ path: String) -> KeptFile? {
    guard let present = try? Files.status(path, followingLinks: false) else { return nil }
    return files.withLock { files in files.first { $0.status?.id == present.id } }
  }

  private var status: FileStatus? { try? descriptor.status }
}
