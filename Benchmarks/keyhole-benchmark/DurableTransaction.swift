import GRDB

/// A database of SQLite's that is written as the vault is: with a log (WAL), on the disk when the call returns
/// (synchronous=FULL), a row in each transaction.
final class DurableTransaction {
  /// In bytes: as much as the row of a short secret in the vault and that of its metadata together.
  private static let rowSize = 512

  private let queue: DatabaseQueue
  private var count = 0

  init(folder: String) throws(Failure) {
    do {
      queue = try DatabaseQueue(path: folder + "/durable.db")
      try queue.writeWithoutTransaction { database in
        try database.execute(sql: "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL")
        try database.execute(sql: "CREATE TABLE IF NOT EXISTS item (id INTEGER PRIMARY KEY, content BLOB)")
      }
    } catch {
      throw Failure("SQLite: \(error)")
    }
  }

  /// One transaction that replaces a row.
  func run() throws(Failure) {
    count += 1
    do {
      try queue.writeWithoutTransaction { database in
        let statement = try database.cachedStatement(
          sql: "INSERT OR REPLACE INTO item VALUES (?, randomblob(\(Self.rowSize)))")
        try statement.execute(arguments: [count % 1000])
      }
    } catch {
      throw Failure("SQLite: \(error)")
    }
  }
}
