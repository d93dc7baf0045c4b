package import FoundationEssentials
package import GRDB
import GRDBSQLite
package import VaultRecords

/// One run of a cached statement: bound, stepped, and reset when dropped.
///
/// GRDB's own rows cost several times as much as SQLite does for one small row.
@safe package struct Query: ~Copyable {
  private let statement: Statement
  private var pointer: OpaquePointer { unsafe statement.sqliteStatement }
  private let connection: OpaquePointer?

  package init(_ database: Database, _ sql: String) throws {
    statement = try database.cachedStatement(sql: sql)
    unsafe connection = database.sqliteConnection
  }

  deinit {
    // SAFETY: GRDB keeps the statement while `statement` is held.
    unsafe sqlite3_reset(statement.sqliteStatement)
    unsafe sqlite3_clear_bindings(statement.sqliteStatement)
  }

  // SAFETY (all below): the pointer is a live statement's; SQLite checks the indexes and copies what is
  // bound, and a blob is valid until the next step, reset or bind.

  package func bind(_ index: Int32, _ value: UInt64) {
    unsafe sqlite3_bind_int64(pointer, index, Int64(bitPattern: value))
  }

  package func bind(_ index: Int32, _ key: ItemKey) {
    var words = (key.high.bigEndian, key.low.bigEndian)
    unsafe withUnsafeBytes(of: &words) { unsafe bind(index, $0) }
  }

  package func bind(_ index: Int32, _ tag: ItemTag) {
    bind(index, ItemKey(high: tag.high, low: tag.low))
  }

  package func bind(_ index: Int32, _ bytes: [UInt8]) {
    unsafe bytes.withUnsafeBytes { unsafe bind(index, $0) }
  }

  package func bind(_ index: Int32, _ bytes: Data) {
    unsafe bytes.withUnsafeBytes { unsafe bind(index, $0) }
  }

  private func bind(_ index: Int32, _ bytes: UnsafeRawBufferPointer) {
    guard let base = bytes.baseAddress else {
      unsafe sqlite3_bind_zeroblob(pointer, index, 0)
      return
    }
    let transient = unsafe unsafeBitCast(-1, to: sqlite3_destructor_type.self)
    unsafe sqlite3_bind_blob64(pointer, index, base, sqlite3_uint64(bytes.count), transient)
  }

  /// True: there is a row. - Throws: `DatabaseError`.
  package func step() throws -> Bool {
    switch unsafe sqlite3_step(pointer) {
    case SQLITE_ROW: true
    case SQLITE_DONE: false
    default:
      throw unsafe DatabaseError(resultCode: ResultCode(rawValue: sqlite3_extended_errcode(connection)))
    }
  }

  package func run() throws {
    while try step() {}
  }

  package func integer(_ column: Int32) -> UInt64 {
    UInt64(bitPattern: unsafe sqlite3_column_int64(pointer, column))
  }

  package var columnCount: Int32 { unsafe sqlite3_column_count(pointer) }

  var parameterCount: Int32 { unsafe sqlite3_bind_parameter_count(pointer) }

  func isInteger(_ column: Int32) -> Bool {
    unsafe sqlite3_column_type(pointer, column) == SQLITE_INTEGER
  }

  func isBlob(_ column: Int32) -> Bool {
    unsafe sqlite3_column_type(pointer, column) == SQLITE_BLOB
  }

  /// The key in a column; nil: there is none.
  package func key(_ column: Int32) -> ItemKey? {
    ItemKey(unsafe Span(_unsafeBytes: blob(column)))
  }

  /// The columns of an item's row, from this one on: tag, key and revision. nil: they are not of an item.
  func itemRow(at column: Int32) -> ItemRow? {
    guard isBlob(column), isBlob(column + 1), isInteger(column + 2), let key = key(column + 1),
      let tag = ItemTag(unsafe Span(_unsafeBytes: blob(column)))
    else { return nil }
    return ItemRow(tag: tag, key: key, revision: integer(column + 2))
  }

  private func blob(_ column: Int32) -> UnsafeRawBufferPointer {
    let base = unsafe sqlite3_column_blob(pointer, column)
    return unsafe UnsafeRawBufferPointer(
      start: base, count: base == nil ? 0 : Int(sqlite3_column_bytes(pointer, column)))
  }

  package func bytes(_ column: Int32) -> [UInt8] {
    unsafe Array(blob(column))
  }

  package func text(_ column: Int32) -> String {
    unsafe String(decoding: blob(column), as: UTF8.self)
  }
}
