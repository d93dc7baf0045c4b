import Crypto
import FoundationEssentials
import GRDB
import Model

/// The row of the table `vault`: which store this is and what one must understand to use it.
struct VaultHeader {
  /// 16 random bytes that everything is bound to.
  var store: [UInt8]
  /// Bits of features without which the vault must not be opened.
  var critical: UInt64
  /// Bits of features that one may ignore.
  var features: UInt64

  /// What this version understands.
  static let understood: UInt64 = 0
}

/// The tables, and how a new vault is made.
enum Schema {
  static let tables = [
    "CREATE TABLE vault (id INTEGER PRIMARY KEY CHECK (id = 1), store BLOB NOT NULL, "
      + "critical INTEGER NOT NULL, features INTEGER NOT NULL) STRICT",
    "CREATE TABLE slot (id INTEGER PRIMARY KEY, kind INTEGER NOT NULL, parameters BLOB NOT NULL, "
      + "commitment BLOB NOT NULL, sealed BLOB NOT NULL, checksum BLOB NOT NULL) STRICT",
    "CREATE TABLE class_key (id INTEGER PRIMARY KEY, class INTEGER NOT NULL, device BLOB NOT NULL, "
      + "sealed BLOB NOT NULL) STRICT",
    "CREATE TABLE manifest (id INTEGER PRIMARY KEY CHECK (id = 1), sealed BLOB NOT NULL) STRICT",
    "CREATE TABLE item (uuid BLOB PRIMARY KEY, tag BLOB NOT NULL UNIQUE, revision INTEGER NOT NULL, "
      + "sealed BLOB NOT NULL) STRICT, WITHOUT ROWID",
    "CREATE TABLE secret (uuid BLOB PRIMARY KEY, class_key INTEGER NOT NULL, kind INTEGER NOT NULL, "
      + "parameters BLOB NOT NULL, wrapped BLOB NOT NULL, sealed BLOB NOT NULL) STRICT, WITHOUT ROWID",
  ]

  /// Makes the tables of an empty database, with one slot for the key.
  static func create(_ database: Database, _ source: borrowing some KeySource & ~Copyable) throws {
    try database.execute(sql: "PRAGMA application_id = \(DatabaseHeader.applicationID)")
    try database.execute(sql: "PRAGMA user_version = \(DatabaseHeader.version)")
    for table in tables { try database.execute(sql: table) }
    let store = (0..<16).map { _ in UInt8.random(in: .min ... .max) }
    let header = VaultHeader(store: store, critical: 0, features: 0)
    try insert(header, database)
    let master = SymmetricKey(size: .bits256)
    try KeySlot(id: 1, source, master: master, store: store).insert(database)
    try Manifest().store(database, VaultKeys(master: master, store: store), header)
  }

  /// The header of a vault that this version may open. - Throws: `unsupported`, `damaged`.
  static func check(_ database: Database, _ path: String) throws -> VaultHeader {
    try DatabaseHeader.checkVersion(UInt32(truncatingIfNeeded: pragma(database, "user_version")), path)
    let header = try fetchHeader(database)
    guard header.critical & ~VaultHeader.understood == 0 else {
      throw StoreError.unsupported(
        reason: "\(path) uses what only a newer Keyhole knows: update Keyhole to open it")
    }
    try checkTables(database)
    return header
  }
}

extension Schema {
  private static func insert(_ header: VaultHeader, _ database: Database) throws {
    let query = try Query(database, "INSERT INTO vault (id, store, critical, features) VALUES (1, ?, ?, ?)")
    query.bind(1, header.store)
    query.bind(2, header.critical)
    query.bind(3, header.features)
    try query.run()
  }

  private static func fetchHeader(_ database: Database) throws -> VaultHeader {
    let query = try Query(database, "SELECT store, critical, features FROM vault WHERE id = 1")
    guard try query.step(), query.bytes(0).count == 16 else {
      throw StoreError.damaged(what: "the vault's header")
    }
    return VaultHeader(store: query.bytes(0), critical: query.integer(1), features: query.integer(2))
  }

  /// A view or a trigger that somebody added could have our statements do other things.
  private static func checkTables(_ database: Database) throws {
    let query = try Query(database, "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY rowid")
    var found: [String] = []
    while try query.step() { found.append(query.text(0)) }
    guard found == tables else { throw StoreError.damaged(what: "the vault's tables") }
  }

  private static func pragma(_ database: Database, _ name: String) throws -> UInt64 {
    let query = try Query(database, "PRAGMA \(name)")
    return try query.step() ? query.integer(0) : 0
  }
}
