import Crypto
import FoundationEssentials
package import GRDB
import Model
package import VaultRecords

/// The tables, and how a new vault is made.
package enum Schema {
  package static func tables(_ format: VaultFormat) -> [String] {
    switch format {
    case .one: tablesOfOne
    case .two: tablesOfTwo
    }
  }

  private static let tablesOfTwo = [
    "CREATE TABLE vault (id INTEGER PRIMARY KEY CHECK (id = 1), store BLOB NOT NULL, "
      + "critical INTEGER NOT NULL, features INTEGER NOT NULL) STRICT",
    "CREATE TABLE slot (id INTEGER PRIMARY KEY, kind INTEGER NOT NULL, parameters BLOB NOT NULL, "
      + "public BLOB NOT NULL, commitment BLOB NOT NULL, sealed BLOB NOT NULL, checksum BLOB NOT NULL) STRICT",
    "CREATE TABLE class_key (id INTEGER PRIMARY KEY, class INTEGER NOT NULL, kind INTEGER NOT NULL, "
      + "device BLOB NOT NULL, sealed BLOB NOT NULL) STRICT",
    "CREATE TABLE manifest (id INTEGER PRIMARY KEY CHECK (id = 1), sealed BLOB NOT NULL) STRICT",
    "CREATE TABLE digest (page INTEGER PRIMARY KEY, leaves BLOB NOT NULL) STRICT",
    "CREATE TABLE item (uuid BLOB PRIMARY KEY, tag BLOB NOT NULL, revision INTEGER NOT NULL, "
      + "sealed BLOB NOT NULL, UNIQUE (tag, revision, uuid)) STRICT, WITHOUT ROWID",
    "CREATE TABLE version (uuid BLOB NOT NULL, revision INTEGER NOT NULL, sealed BLOB NOT NULL, "
      + "PRIMARY KEY (uuid, revision)) STRICT, WITHOUT ROWID",
    "CREATE TABLE secret (uuid BLOB NOT NULL, part INTEGER NOT NULL, revision INTEGER NOT NULL, "
      + "class_key INTEGER NOT NULL, kind INTEGER NOT NULL, parameters BLOB NOT NULL, wrapped BLOB NOT NULL, "
      + "sealed BLOB NOT NULL, PRIMARY KEY (uuid, part, revision)) STRICT, WITHOUT ROWID",
  ]

  private static let tablesOfOne = [
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

  /// Makes the tables of an empty database, with one slot for the key, and lists `devices` as known ones.
  ///
  /// - Returns: what its first anchor is made of.
  package static func create(
    _ database: Database, _ source: borrowing some KeySource & ~Copyable, _ machine: MachineIdentity
  ) throws -> (header: VaultHeader, manifest: Manifest) {
    try database.execute(sql: "PRAGMA application_id = \(DatabaseHeader.applicationID)")
    let store = (0..<16).map { _ in UInt8.random(in: .min ... .max) }
    let header = VaultHeader(format: .newest, store: store)
    try createTables(database, header)
    let master = MasterKeys.random(withPasscode: false)
    try KeySlot(id: 1, source, master, header).insert(database, header.format)
    var manifest = Manifest()
    manifest.devices = [machine.device(manifest.anchorKey)]
    let keys = try VaultKeys(master, header)
    try DigestTable(database: database, keys: keys).rebuild(&manifest)
    try manifest.store(database, keys)
    return (header, manifest)
  }

  /// The tables and the header's row, of the newest format.
  package static func createTables(_ database: Database, _ header: VaultHeader) throws {
    try database.execute(sql: "PRAGMA user_version = \(header.format.rawValue)")
    for table in tables(header.format) { try database.execute(sql: table) }
    try insert(header, database)
  }

  /// The header of a vault that this version may open. - Throws: `unsupported`, `damaged`.
  package static func check(_ database: Database, _ path: String) throws -> VaultHeader {
    let version = UInt32(truncatingIfNeeded: try pragma(database, "user_version"))
    let header = try fetchHeader(database, DatabaseHeader.checkVersion(version, path))
    guard header.critical & ~VaultHeader.understood == 0 else {
      throw StoreError.unsupported(
        reason: "\(path) uses what only a newer Keyhole knows: update Keyhole to open it")
    }
    try checkTables(database, header.format)
    return header
  }
}

extension Schema {
  /// Makes a table empty of which not every page can be read; so DELETE could not. Its pages stay in the file until VACUUM.
  ///
  /// An empty table of the same columns gets its place in sqlite_schema (https://sqlite.org/fileformat.html, 2.6).
  package static func replaceTable(_ name: String, _ database: Database) throws {
    let start = "CREATE TABLE \(name) "
    guard let statement = tables(.two).first(where: { $0.hasPrefix(start) }) else { return }
    let other = name + "_replacement"
    try database.execute(sql: "CREATE TABLE \(other) " + statement.dropFirst(start.count))
    let version = try pragma(database, "schema_version")
    try database.execute(sql: "PRAGMA writable_schema = ON")
    for (entry, source) in [(name, other), ("sqlite_autoindex_\(name)_2", "sqlite_autoindex_\(other)_2")] {
      try database.execute(
        sql: "UPDATE sqlite_schema SET rootpage = "
          + "(SELECT rootpage FROM sqlite_schema WHERE name = '\(source)') WHERE name = '\(entry)'")
    }
    try database.execute(sql: "DELETE FROM sqlite_schema WHERE tbl_name = '\(other)'")
    try database.execute(sql: "PRAGMA schema_version = \(version &+ 1)")
    // Reads the schema again, also for this connection.
    try database.execute(sql: "PRAGMA writable_schema = RESET")
  }

  private static func insert(_ header: VaultHeader, _ database: Database) throws {
    let query = try Query(database, "INSERT INTO vault (id, store, critical, features) VALUES (1, ?, ?, ?)")
    query.bind(1, header.store)
    query.bind(2, header.critical)
    query.bind(3, header.features)
    try query.run()
  }

  private static func fetchHeader(_ database: Database, _ format: VaultFormat) throws -> VaultHeader {
    let query = try Query(database, "SELECT store, critical, features FROM vault WHERE id = 1")
    guard try query.step(), query.bytes(0).count == 16 else {
      throw StoreError.damaged(what: "the vault's header")
    }
    return VaultHeader(
      format: format, store: query.bytes(0), critical: query.integer(1), features: query.integer(2))
  }

  /// With a view or a trigger of another program's our statements could do other things.
  private static func checkTables(_ database: Database, _ format: VaultFormat) throws {
    let query = try Query(database, "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY rowid")
    var found: [String] = []
    while try query.step() { found.append(query.text(0)) }
    guard found != tables(format) else { return }
    guard format == .one || found.contains(where: { $0.contains(" digest ") }) else {
      throw StoreError.unsupported(
        reason:
          "the vault was made by a build of Keyhole from before version 0.2: that build's `keyhole export` saves it"
      )
    }
    throw StoreError.damaged(what: "the vault's tables")
  }

  private static func pragma(_ database: Database, _ name: String) throws -> UInt64 {
    let query = try Query(database, "PRAGMA \(name)")
    return try query.step() ? query.integer(0) : 0
  }
}
