import GRDB
import GRDBSQLite
import Platform
import Synchronization
import VaultRecords

/// Has the disk give all the room of SQLite's shared memory (`-shm`) when that grows, not when it is first written to.
///
/// SQLite itself writes one byte for each 4 KiB. Where the blocks of the disk are smaller, the others are holes, and a
/// store into one of them on a full disk ends the process by SIGBUS. So the method that maps the memory is replaced by
/// one that calls posix_fallocate(3) first, and says SQLITE_IOERR_SHMSIZE where there is no room.
enum SharedMemoryAllocation {
  /// The size that SQLite allocates by itself, in bytes.
  private static let unit = 4096

  /// SQLite finds the table of methods at the beginning; the rest is ours.
  @safe fileprivate struct Methods {
    var table: sqlite3_io_methods
    let original: UnsafePointer<sqlite3_io_methods>
    let file: Int32
  }

  /// Replaces the method for one connection, before its log is used. Does nothing where blocks are large enough.
  static func install(_ database: Database, _ path: String) {
    guard let size = blockSize(path), size < unit else { return }
    var file: UnsafeMutablePointer<sqlite3_file>?
    // SAFETY: SQLite fills the pointer with its own file of the database, whose methods it reads at each call.
    let status = unsafe withUnsafeMutablePointer(to: &file) {
      unsafe sqlite3_file_control(database.sqliteConnection, "main", SQLITE_FCNTL_FILE_POINTER, $0)
    }
    guard status == SQLITE_OK, let file = unsafe file, let original = unsafe file.pointee.pMethods,
      unsafe original.pointee.iVersion >= 2, unsafe original.pointee.xShmMap != nil
    else { return }
    let descriptor = SharedMemoryFiles.descriptor(path + "-shm")
    guard descriptor >= 0 else { return }
    // Stays for as long as the process: SQLite has no moment at which it is surely done with it.
    let methods = UnsafeMutablePointer<Methods>.allocate(capacity: 1)
    unsafe methods.initialize(to: Methods(table: original.pointee, original: original, file: descriptor))
    unsafe methods.pointee.table.xShmMap = mapAllocated
    // SAFETY: a structure's first member has the structure's address.
    unsafe file.pointee.pMethods = unsafe UnsafeRawPointer(methods).assumingMemoryBound(
      to: sqlite3_io_methods.self)
  }

  private static func blockSize(_ path: String) -> Int? {
    guard let slash = path.lastIndex(of: "/") else { return nil }
    guard let volume = try? Volume(at: String(path[..<slash])) else { return nil }
    return Int(clamping: volume.preferredSize)
  }
}

/// xShmMap of sqlite3_io_methods.
private let mapAllocated:
  @convention(c) (
    UnsafeMutablePointer<sqlite3_file>?, Int32, Int32, Int32, UnsafeMutablePointer<UnsafeMutableRawPointer?>?
  ) -> Int32 = { file, region, size, extends, memory in
    guard let table = unsafe file?.pointee.pMethods else { return SQLITE_IOERR }
    // SAFETY: `install` put the table at the beginning of such a structure, which stays.
    let methods = unsafe UnsafeRawPointer(table).assumingMemoryBound(to: SharedMemoryAllocation.Methods.self)
    guard let map = unsafe methods.pointee.original.pointee.xShmMap else { return SQLITE_IOERR }
    let status = unsafe map(file, region, size, extends, memory)
    guard status == SQLITE_OK, extends != 0, unsafe memory?.pointee != nil else { return status }
    do throws(Errno) {
      try unsafe Files.allocate(
        methods.pointee.file, at: Int64(region) * Int64(size), count: Int64(size))
      return SQLITE_OK
    } catch {
      // SQLITE_IOERR_SHMSIZE, a macro: SQLITE_IOERR | 19 << 8.
      return error == .ENOSPC || error == .EDQUOT ? SQLITE_IOERR | 19 << 8 : SQLITE_OK
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
