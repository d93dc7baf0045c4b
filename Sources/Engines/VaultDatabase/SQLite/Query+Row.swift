import GRDBSQLite
package import Model
import VaultRecords

// A row with all of its columns as they are stored, for backups.
//
// The number of columns (1 byte), then for each of them its type as SQLite numbers it (1 integer, 4 blob: the tables of
// a vault have no other) and 8 bytes, or a length of 4 bytes and so many bytes; all big-endian.
extension Query {
  /// The row that the query is at. - Throws: `damaged` for a column of another type.
  package func row() throws(StoreError) -> [UInt8] {
    let count = columnCount
    var bytes = [UInt8(truncatingIfNeeded: count)]
    for column in 0..<count {
      if isBlob(column) {
        let content = self.bytes(column)
        bytes.append(UInt8(SQLITE_BLOB))
        bytes += Self.bigEndian(UInt64(content.count)).suffix(4)
        bytes += content
      } else {
        guard isInteger(column) else { throw .damaged(what: "the vault's tables") }
        bytes.append(UInt8(SQLITE_INTEGER))
        bytes += Self.bigEndian(integer(column))
      }
    }
    return bytes
  }

  /// Binds what `row` gave to the statement's parameters. - Throws: `damaged` for what is cut off or of another kind.
  package func bind(row: [UInt8]) throws(StoreError) {
    var reader = RowReader(rest: row[...])
    let count = try reader.integer(1)
    guard count == UInt64(max(0, parameterCount)) else { throw RowReader.damaged }
    for column in 1...Int32(truncatingIfNeeded: max(1, count)) { try bind(column, from: &reader) }
    guard reader.rest.isEmpty else { throw RowReader.damaged }
  }

  private func bind(_ column: Int32, from reader: inout RowReader) throws(StoreError) {
    switch Int32(truncatingIfNeeded: try reader.integer(1)) {
    case SQLITE_INTEGER: bind(column, try reader.integer(8))
    case SQLITE_BLOB: bind(column, try reader.bytes(reader.integer(4)))
    default: throw RowReader.damaged
    }
  }

  /// Eight bytes.
  private static func bigEndian(_ number: UInt64) -> [UInt8] {
    stride(from: 56, through: 0, by: -8).map { UInt8(truncatingIfNeeded: number >> UInt64($0)) }
  }
}

private struct RowReader {
  var rest: ArraySlice<UInt8>

  static let damaged = StoreError.damaged(what: "the backup")

  mutating func integer(_ size: Int) throws(StoreError) -> UInt64 {
    guard rest.count >= size else { throw Self.damaged }
    defer { rest = rest.dropFirst(size) }
    return rest.prefix(size).reduce(0) { $0 << 8 | UInt64($1) }
  }

  mutating func bytes(_ count: UInt64) throws(StoreError) -> [UInt8] {
    guard count <= UInt64(rest.count) else { throw Self.damaged }
    defer { rest = rest.dropFirst(Int(count)) }
    return Array(rest.prefix(Int(count)))
  }
}
