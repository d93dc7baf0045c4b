import GRDB
import GRDBSQLite
import Platform

/// A file as SQLite has it open (`sqlite3_file`), by the methods of its table. Valid as long as its connection.
@safe struct SQLiteFile {
  enum Part {
    case database
    /// The log, or the journal.
    case log

    fileprivate var operation: Int32 {
      switch self {
      case .database: SQLITE_FCNTL_FILE_POINTER
      case .log: SQLITE_FCNTL_JOURNAL_POINTER
      }
    }
  }

  private let file: UnsafeMutablePointer<sqlite3_file>
  private let methods: UnsafePointer<sqlite3_io_methods>

  /// nil: the connection has no such file open.
  init?(_ part: Part, of database: Database) {
    var file: UnsafeMutablePointer<sqlite3_file>?
    // SAFETY: SQLite fills the pointer with a file of its own, and its methods are called as its documentation asks.
    let status = unsafe withUnsafeMutablePointer(to: &file) {
      unsafe sqlite3_file_control(database.sqliteConnection, "main", part.operation, $0)
    }
    guard status == SQLITE_OK, let file = unsafe file, let methods = unsafe file.pointee.pMethods else {
      return nil
    }
    unsafe self.file = file
    unsafe self.methods = methods
  }

  /// The errno(3) of the last call of the system for this file that failed; 0: none did.
  var lastError: Int32 {
    var error: Int32 = 0
    // SAFETY: SQLite fills the number.
    _ = unsafe methods.pointee.xFileControl?(file, SQLITE_FCNTL_LAST_ERRNO, &error)
    return error
  }

  /// Whether its connection can share memory with others.
  var sharesMemory: Bool { unsafe methods.pointee.iVersion >= 2 && methods.pointee.xShmMap != nil }

  /// The memory that the connection shares with others; nil: there is none, or it is not mapped yet.
  func walIndex() -> WALIndex? {
    guard sharesMemory, let map = unsafe methods.pointee.xShmMap else { return nil }
    var region: UnsafeMutableRawPointer?
    // SAFETY: the first region is mapped already, and stays where it is until the connection closes.
    guard unsafe map(file, 0, WALIndex.regionSize, 0, &region) == SQLITE_OK, let region = unsafe region else {
      return nil
    }
    return unsafe WALIndex(region: UnsafeRawPointer(region))
  }
}

// MARK: - The WAL index

/// The memory that a connection shares with the others to the same database. Stays mapped as long as the connection.
@safe struct WALIndex {
  /// In bytes, as SQLite maps it.
  fileprivate static let regionSize: Int32 = 32_768

  private let header: UnsafeRawPointer

  fileprivate init(region: UnsafeRawPointer) {
    unsafe header = region
  }

  /// The first copy of the header (https://sqlite.org/walformat.html, 2.1), which is written after the second one.
  struct Header {
    /// `iVersion`.
    let version: UInt32
    /// `isInit`.
    let isFilled: UInt8
    let front: SIMD4<UInt64>
    let back: SIMD2<UInt64>
    /// The second copy is the same.
    let isWhole: Bool
  }

  /// As it is now: another process may be writing it.
  var present: Header {
    // SAFETY: the header has 48 bytes, twice.
    let (front, back) = unsafe (
      header.loadUnaligned(as: SIMD4<UInt64>.self),
      header.loadUnaligned(fromByteOffset: 32, as: SIMD2<UInt64>.self)
    )
    let isWhole =
      unsafe front == header.loadUnaligned(fromByteOffset: 48, as: SIMD4<UInt64>.self)
      && back == header.loadUnaligned(fromByteOffset: 80, as: SIMD2<UInt64>.self)
    return unsafe Header(
      version: header.load(as: UInt32.self), isFilled: header.load(fromByteOffset: 12, as: UInt8.self),
      front: front, back: back, isWhole: isWhole)
  }
}

// MARK: - Allocating shared memory

extension SQLiteFile {
  /// SQLite finds the table of methods at the beginning; the rest is ours.
  @safe fileprivate struct AllocatingMethods {
    var table: sqlite3_io_methods
    let original: UnsafePointer<sqlite3_io_methods>
    let file: Int32
  }

  /// Has `descriptor`, the file behind the shared memory, allocated as far as that is mapped, before it is used.
  ///
  /// Only where it shares memory. The descriptor must stay open.
  func allocateSharedMemory(of descriptor: Int32) {
    // Stays for as long as the process: SQLite has no moment at which it is surely done with it.
    let replacement = UnsafeMutablePointer<AllocatingMethods>.allocate(capacity: 1)
    unsafe replacement.initialize(
      to: AllocatingMethods(table: methods.pointee, original: methods, file: descriptor))
    unsafe replacement.pointee.table.xShmMap = mapAllocated
    // SAFETY: a structure's first member has the structure's address. SQLite reads the methods at each call.
    unsafe file.pointee.pMethods = unsafe UnsafeRawPointer(replacement).assumingMemoryBound(
      to: sqlite3_io_methods.self)
  }
}

/// xShmMap of sqlite3_io_methods.
private let mapAllocated:
  @convention(c) (
    UnsafeMutablePointer<sqlite3_file>?, Int32, Int32, Int32, UnsafeMutablePointer<UnsafeMutableRawPointer?>?
  ) -> Int32 = { file, region, size, extends, memory in
    guard let table = unsafe file?.pointee.pMethods else { return SQLITE_IOERR }
    // SAFETY: `allocateSharedMemory` put the table at the beginning of such a structure, which stays.
    let methods = unsafe UnsafeRawPointer(table).assumingMemoryBound(to: SQLiteFile.AllocatingMethods.self)
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
