import GRDB
import Platform
import Synchronization

/// Has the disk give all the room of SQLite's shared memory (`-shm`) when that grows, not when it is first written to.
///
/// SQLite itself writes one byte for each 4 KiB. Where the blocks of the disk are smaller, the others are holes, and a
/// store into one of them on a full disk ends the process by SIGBUS. So the method that maps the memory is replaced by
/// one that calls posix_fallocate(3) first, and says SQLITE_IOERR_SHMSIZE where there is no room.
enum SharedMemoryAllocation {
  /// The size that SQLite allocates by itself, in bytes.
  private static let unit = 4096

  /// Replaces the method for one connection, before its log is used. Does nothing where blocks are large enough.
  static func install(_ database: Database, _ path: String) {
    guard let size = blockSize(path), size < unit,
      let file = SQLiteFile(.database, of: database), file.sharesMemory
    else { return }
    let descriptor = SharedMemoryFiles.descriptor(path + "-shm")
    if descriptor >= 0 { file.allocateSharedMemory(of: descriptor) }
  }

  private static func blockSize(_ path: String) -> Int? {
    guard let slash = path.lastIndex(of: "/") else { return nil }
    guard let volume = try? Volume(at: String(path[..<slash])) else { return nil }
    return Int(clamping: volume.preferredSize)
  }
}

/// Descriptors of the files behind shared memory. None is ever closed: that would drop the locks that SQLite has on the
/// file (fcntl(2)), whichever descriptor it has them by.
private enum SharedMemoryFiles {
  private static let known = Mutex<[String: (stamp: FileStamp, file: Int32)]>([:])

  /// -1: it can't be opened.
  static func descriptor(_ path: String) -> Int32 {
    known.withLock { known in
      if let entry = known[path], let stamp = FileStamp(path), entry.stamp.isSameFile(as: stamp) {
        return entry.file
      }
      let file = (try? Descriptor(path, [.readingAndWriting, .create, .noFollow]))?.release() ?? -1
      if file >= 0, let stamp = FileStamp(path) { known[path] = (stamp, file) }
      return file
    }
  }
}
