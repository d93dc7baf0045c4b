import GRDB
public import Model
import Platform
public import SecretMemory
import VaultDatabase
import VaultRecords

/// Makes a vault's files of the records of a backup, in a folder of its own.
///
/// A backup that is sealed to a public key can be of anyone who has that key, so nothing of it is executed: a table has
/// to be one of those that this version makes.
public final class VaultBuilder {
  private let folder: String
  private var path: String { folder + "/vault.db" }
  private let connection: Connection
  private var format: VaultFormat?
  private var tables: [String] = []
  private var insertion = ""

  /// In a folder of 0700 that has no vault.
  public init(_ folder: String) throws(StoreError) {
    self.folder = folder
    let path = folder + "/vault.db"
    try PrivateFile.createEmpty(path)
    connection = try Connection(path)
    try connection.run { try $0.beginTransaction() }
  }

  /// - Throws: `unsupported` for what a newer Keyhole made, `damaged`, `noSpace`.
  public func add(_ record: VaultArchive.Record) throws(StoreError) {
    switch record {
    case .format(let number): try begin(number)
    case .table(let table): try make(table)
    case .row(let bytes): try insert(bytes)
    }
  }

  /// Writes the key file.
  public func write(key: borrowing SecretBytes) throws(StoreError) {
    guard key.count == KeyFileSource.length else { throw .damaged(what: "the backup") }
    try PrivateFile.create(folder + "/vault.key", key.span)
  }

  /// Checks the tables, brings all to the disk and closes the file.
  public func finish() throws(StoreError) {
    guard let format, tables == Schema.tables(format) else { throw .damaged(what: "the backup") }
    _ = try connection.run { try Schema.check($0, path) }
    try connection.run { try $0.commit() }
    try connection.run { try $0.execute(sql: "PRAGMA journal_mode = WAL") }
    try connection.close()
    guard let file = try PrivateFile.open(path) else { throw .notFound }
    try StoreError.call("fsync") { () throws(Errno) in try file.synchronize() }
    try PrivateFile.synchronize(directory: folder)
  }

  private func begin(_ number: UInt32) throws(StoreError) {
    guard format == nil else { throw .damaged(what: "the backup") }
    guard let format = VaultFormat(rawValue: number) else { throw Self.newer }
    self.format = format
    try connection.run { database in
      try database.execute(sql: "PRAGMA application_id = \(DatabaseHeader.applicationID)")
      try database.execute(sql: "PRAGMA user_version = \(number)")
    }
  }

  private func make(_ table: String) throws(StoreError) {
    guard let format, Schema.tables(format).contains(table), !tables.contains(table) else {
      throw Self.newer
    }
    try connection.run { try $0.execute(sql: table) }
    tables.append(table)
    let name = VaultArchive.name(table)
    let columns = try connection.run { try Query($0, "SELECT * FROM \(name)").columnCount }
    let marks = Array(repeating: "?", count: Int(columns)).joined(separator: ", ")
    insertion = "INSERT INTO \(name) VALUES (\(marks))"
  }

  private func insert(_ row: [UInt8]) throws(StoreError) {
    guard !insertion.isEmpty else { throw .damaged(what: "the backup") }
    do throws(StoreError) {
      try connection.run { database in
        let query = try Query(database, insertion)
        try query.bind(row: row)
        try query.run()
      }
    } catch {
      // Two rows of one key, or a column of another type.
      throw error == .exists ? .damaged(what: "the backup") : error
    }
  }

  private static let newer = StoreError.unsupported(
    reason: "the backup holds a vault of a newer Keyhole: update Keyhole to restore it")
}
