import GRDB
import Model
import Store
import VaultDatabase
import VaultRecords

/// Reads every item of one state of a vault, by a connection and keys of its own: other calls go on meanwhile, also where the
/// vault is locked. Used by one thread at a time.
final class SnapshotReader {
  private let connection: Connection
  private let connections: ReaderConnection
  private let keys: VaultKeys
  private let manifest: Manifest
  /// The moment of the state; nil: it is not known.
  let mark: WALSnapshot?
  private var walk = ItemTable.Walk()
  private let keepsRows: Bool
  /// Whether all were read, and are those that the manifest answers for.
  private(set) var isWhole = false
  /// All rows, where they are kept and whole.
  private(set) var rows: KnownRows?

  /// - Throws: `interrupted` where another process has made new keys; `unreachable`, `damaged`.
  init(_ connections: ReaderConnection, _ keys: VaultKeys, keepingRows: Bool) throws(StoreError) {
    (self.connections, self.keys, keepsRows) = (connections, keys, keepingRows)
    let connection = try connections.take()
    self.connection = connection
    let before = connection.commitMark()
    do throws(StoreError) {
      manifest = try connection.run { database in
        // It ends when the connection is given back.
        try database.beginTransaction(.deferred)
        guard let manifest = try Manifest.fetchIfWhole(database, keys) else { throw StoreError.interrupted }
        return manifest
      }
      // A commit in between would be one of two moments.
      mark = before == connection.commitMark() ? before : nil
    } catch {
      connections.giveBack(connection)
      throw error
    }
  }

  deinit { connections.giveBack(connection) }

  var generation: UInt64 { manifest.generation }

  /// Items whose metadata don't open.
  var damaged: [ItemKey] { walk.damaged }

  /// The next items; empty: there are no more, and `isWhole` is known.
  func next(_ limit: Int) throws(StoreError) -> [Item] {
    try connection.run { database in
      let items = try ItemTable(database: database, keys: keys).next(limit, &walk)
      if items.isEmpty, !walk.isBroken { try compare(DigestTable(database: database, keys: keys)) }
      return items
    }
  }

  private func compare(_ table: DigestTable) throws {
    guard keepsRows else { return isWhole = try table.isWhole(manifest, table: walk.sum) }
    rows = try table.knownRows(manifest, table: walk.sum)
    isWhole = rows != nil
  }

  /// Reads on to the end.
  func readAll() throws(StoreError) {
    while try !next(Self.page).isEmpty {}
  }

  /// So many items are read at a time.
  static let page = 512
}
