import GRDB
public import Model
import Platform
public import SecretMemory
import VaultDatabase
import VaultRecords

/// A vault's rows as they are stored, for a backup.
///
/// Nothing is opened, so that a locked vault can be read as well. The secrets of the classes `…ThisDeviceOnly` are left
/// out; the metadata of their items are not, because the manifest's hash tree covers them: without them a restored vault could
/// not be distinguished from one that items were deleted from. `VaultEngine.removeItemsLeftOut` removes them after a restore.
public enum VaultArchive {
  /// One record of the archive: the format first, then each table followed by its rows.
  public enum Record: Hashable, Sendable {
    /// `user_version` of the database: the vault's format.
    case format(UInt32)
    /// The statement that makes a table; the rows that follow are the table's.
    case table(String)
    /// See `Query.row`.
    case row([UInt8])
  }

  /// The counts of an archive, once it was read to its end.
  public struct Summary: Hashable, Sendable {
    /// Items whose secrets are among the records.
    public var items: UInt64 = 0
    /// Items of which a secret was left out.
    public var leftOut: UInt64 = 0
    /// Whether a way to the keys takes the vault's key file.
    public var needsKeyFile = false
  }

  /// Whether there is a vault in a folder, or what is left of one.
  ///
  /// - Throws: where that can't be determined (`accessDenied`), and `damaged` for a key file without its vault.
  public static func exists(in folder: String) throws(StoreError) -> Bool {
    for name in ["vault.db", "vault.db-wal"] where try isThere("\(folder)/\(name)") { return true }
    guard try !isThere("\(folder)/vault.key") else {
      throw .damaged(what: "the vault (\(folder) has vault.key and no vault.db)")
    }
    return false
  }

  private static func isThere(_ path: String) throws(StoreError) -> Bool {
    try StoreError.call(path) { () throws(Errno) in try Files.status(path) != nil }
  }

  /// Reads one state of the vault in a folder, row by row, whatever other processes do meanwhile.
  ///
  /// - Throws: what `body` throws; as `VaultEngine.init`.
  public static func read(
    _ folder: String, stateFolder: String, _ body: (Record) throws -> Void
  ) throws -> Summary {
    let file = try VaultFile(opening: VaultDirectory(folder, state: stateFolder))
    var failure: (any Error)?
    do {
      return try file.connection.read { database in
        let header = try Schema.check(database, file.directory.database)
        do { return try read(database, header.format, body) } catch {
          failure = error
          throw error
        }
      }
    } catch {
      // The connection turns whatever is thrown into an error of the vault's.
      if let failure, !(failure is DatabaseError) { throw failure }
      throw error
    }
  }

  /// The vault's key file. - Throws: `accessDenied` where it is missing: nothing opens the vault without it.
  public static func keyFile(_ folder: String, stateFolder: String) throws(StoreError) -> SecretBytes {
    try VaultDirectory(folder, state: stateFolder).fetchKey()
  }

  /// The class keys of this device, or of another one.
  private static let boundKeys = "(SELECT id FROM class_key WHERE class IN (3, 4, 5))"

  private static func read(
    _ database: Database, _ format: VaultFormat, _ body: (Record) throws -> Void
  ) throws -> Summary {
    try body(.format(format.rawValue))
    for table in Schema.tables(format) {
      let name = name(table)
      try body(.table(table))
      let condition = name == "secret" ? " WHERE class_key NOT IN \(boundKeys)" : ""
      let rows = try Query(database, "SELECT * FROM \(name)\(condition)")
      while try rows.step() { try body(.row(rows.row())) }
    }
    var summary = Summary()
    summary.leftOut = try number(
      database, "SELECT count(DISTINCT uuid) FROM secret WHERE class_key IN \(boundKeys)")
    let all = try number(database, "SELECT count(*) FROM item")
    summary.items = all - min(all, summary.leftOut)
    summary.needsKeyFile = try KeySlot.fetchAll(database, format).contains(where: \.takesKeyFile)
    return summary
  }

  private static func number(_ database: Database, _ sql: String) throws -> UInt64 {
    let query = try Query(database, sql)
    return try query.step() ? query.integer(0) : 0
  }

  /// The name in `CREATE TABLE name (…`.
  static func name(_ table: String) -> String {
    String(table.split(separator: " ", maxSplits: 3)[2])
  }
}
