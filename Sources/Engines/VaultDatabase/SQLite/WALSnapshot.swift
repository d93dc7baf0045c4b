import GRDB
import GRDBSQLite
import VaultRecords

/// A moment between two commits to a database, of whatever process: with equal marks nothing was committed between.
///
/// It is the header of SQLite's WAL index (https://sqlite.org/walformat.html, 2.1), which lies in memory that all
/// connections share and is replaced as the last step of each commit. A look at it costs no call of the system.
package struct WALSnapshot: Equatable {
  // The 48 bytes of the header's first copy, which is written after the second one.
  private let front: SIMD4<UInt64>
  private let back: SIMD2<UInt64>

  /// `iVersion` of the only format there is.
  private static let version: UInt32 = 3_007_000

  /// nil: the index is not filled yet, or of another format.
  fileprivate init?(_ header: UnsafeRawPointer) {
    // SAFETY: the header has 48 bytes. What is read while another process writes equals no mark of a moment between.
    guard unsafe header.load(as: UInt32.self) == Self.version,
      unsafe header.load(fromByteOffset: 12, as: UInt8.self) == 1
    else { return nil }
    front = unsafe header.loadUnaligned(as: SIMD4<UInt64>.self)
    back = unsafe header.loadUnaligned(fromByteOffset: 32, as: SIMD2<UInt64>.self)
  }
}

/// The memory that a connection shares with the others to the same database. Stays mapped as long as the connection.
@safe struct WALIndex {
  private let header: UnsafeRawPointer

  /// In bytes, as SQLite maps it.
  private static let regionSize: Int32 = 32_768

  /// nil: the database keeps no log of this kind, or there is no memory that is shared.
  init?(_ database: Database) {
    var file: UnsafeMutablePointer<sqlite3_file>?
    // SAFETY: SQLite fills the pointer with its own file, and the methods are called as its documentation asks. The
    // first region is mapped already, and stays where it is until the connection closes.
    let status = unsafe withUnsafeMutablePointer(to: &file) {
      unsafe sqlite3_file_control(database.sqliteConnection, "main", SQLITE_FCNTL_FILE_POINTER, $0)
    }
    guard status == SQLITE_OK, let file = unsafe file, let methods = unsafe file.pointee.pMethods,
      unsafe methods.pointee.iVersion >= 2, let map = unsafe methods.pointee.xShmMap
    else { return nil }
    var region: UnsafeMutableRawPointer?
    guard unsafe map(file, 0, Self.regionSize, 0, &region) == SQLITE_OK, let region = unsafe region else {
      return nil
    }
    unsafe header = UnsafeRawPointer(region)
  }

  var mark: WALSnapshot? { unsafe WALSnapshot(header) }
}
