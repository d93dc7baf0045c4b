import GRDB
import GRDBSQLite
import Model

// SQLite's functions for a connection that GRDB has no methods for.
//
// SAFETY (all below): the connection is GRDB's, open while the database is lent, if it `isOpen`.
extension Database {
  /// Whether the database was not closed: SQLite's functions may be called for it.
  var isOpen: Bool { unsafe sqliteConnection != nil }

  /// The errno(3) of the last call of the system that failed, as the connection keeps it.
  var systemError: Int32 { unsafe sqlite3_system_errno(sqliteConnection) }

  /// The errno(3) of the call that failed: that of the log's file or of the database's, which SQLite keeps with each;
  /// the connection's own may be another call's by now.
  var systemErrorOfFiles: Int32 {
    for part in [SQLiteFile.Part.log, .database] {
      if let error = SQLiteFile(part, of: self)?.lastError, error != 0 { return error }
    }
    return systemError
  }

  /// Whether the open file has left its path, or that can't be determined.
  var hasMoved: Bool {
    var hasMoved: Int32 = 1
    // SAFETY: SQLite fills the number.
    _ = unsafe sqlite3_file_control(sqliteConnection, "main", SQLITE_FCNTL_HAS_MOVED, &hasMoved)
    return hasMoved != 0
  }

  /// Has SQLite drop the pages that it keeps in memory.
  func releaseMemory() {
    _ = unsafe sqlite3_db_release_memory(sqliteConnection)
  }

  /// Takes the bytes of a database file as the content of this one, in memory, for reading.
  ///
  /// - Throws: `outOfMemory`, `damaged`.
  func deserialize(_ bytes: [UInt8]) throws(StoreError) {
    let flags = UInt32(SQLITE_DESERIALIZE_FREEONCLOSE | SQLITE_DESERIALIZE_READONLY)
    guard let memory = unsafe sqlite3_malloc64(UInt64(bytes.count)) else { throw .outOfMemory }
    // SAFETY: the memory has room for all bytes, and is SQLite's from the call on, whatever that returns.
    let status = unsafe bytes.withUnsafeBytes { bytes in
      unsafe memory.copyMemory(from: bytes.baseAddress ?? UnsafeRawPointer(memory), byteCount: bytes.count)
      return unsafe sqlite3_deserialize(
        sqliteConnection, "main", memory.assumingMemoryBound(to: UInt8.self), Int64(bytes.count),
        Int64(bytes.count), flags)
    }
    guard status == SQLITE_OK else { throw .damaged(what: "the vault's database") }
  }

  /// Brings the log into the database, and truncates it if that is asked for; other connections are waited for so many
  /// milliseconds. In SQLite: SQLITE_CHECKPOINT_FULL and …_TRUNCATE.
  ///
  /// - Returns: true: it is done, or failed and is not worth another attempt before the next commit.
  func checkpoint(truncatingLog truncates: Bool, waiting milliseconds: Int32) -> Bool {
    unsafe sqlite3_busy_timeout(sqliteConnection, milliseconds)
    defer { unsafe sqlite3_busy_timeout(sqliteConnection, Connection.patienceMilliseconds) }
    let mode = truncates ? SQLITE_CHECKPOINT_TRUNCATE : SQLITE_CHECKPOINT_FULL
    let status = unsafe sqlite3_wal_checkpoint_v2(sqliteConnection, "main", mode, nil, nil)
    return status & 0xFF != SQLITE_BUSY && status & 0xFF != SQLITE_LOCKED
  }
}
