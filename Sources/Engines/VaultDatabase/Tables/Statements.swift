package import VaultRecords

/// The SQL of the tables that a change of keys or of the format reads and writes.
package final class Statements: Sendable {
  package let format: VaultFormat
  /// The suffix of the tables' names: empty, or another one while another format takes their place.
  let suffix: String

  let fetchItem: String
  let fetchKeyOfItem: String
  let fetchRow: String
  let fetchAllItems: String
  /// So many rows after a key, in their order.
  let fetchItemsAfter: String
  /// The rows of a range of tags in their order, from the index alone; so the next one.
  let fetchRowsOfLeaf: String
  let fetchRowsOfIndex: String
  /// The same rows from the table itself.
  let fetchRowsOfTable: String
  let fetchItemKeys: String
  let insertItem: String
  let deleteItem: String
  /// An item's metadata and its newest secret.
  let fetchItemAndSecret: String
  let fetchSecret: String
  let insertSecret: String
  let deleteSecrets: String
  package let deleteSecret: String
  /// Those of one part that are not older than a revision.
  let deleteNewestSecrets: String
  let fetchClassKeys: String

  /// The suffix for tables of an older format while they are replaced.
  package static let replaced = "_replaced"

  private init(_ format: VaultFormat, suffix: String = "") {
    (self.format, self.suffix) = (format, suffix)
    let (item, secret) = ("item\(suffix)", "secret\(suffix)")
    fetchItem = "SELECT tag, revision, sealed FROM \(item) WHERE uuid = ?"
    fetchKeyOfItem = "SELECT uuid FROM \(item) WHERE tag = ?"
    fetchRow = "SELECT tag, uuid, revision FROM \(item) WHERE uuid = ?"
    fetchAllItems = "SELECT tag, revision, sealed, uuid FROM \(item)"
    fetchItemsAfter = "SELECT tag, uuid, revision, sealed FROM \(item) WHERE uuid > ? ORDER BY uuid LIMIT ?"
    // The index of the second of the table's two constraints (https://sqlite.org/fileformat.html, 2.6.1). The key is among
    // its columns for SQLite to read no row of the table.
    let rows = "SELECT tag, uuid, revision FROM \(item)"
    let index = "INDEXED BY sqlite_autoindex_\(item)_2"
    fetchRowsOfLeaf = "\(rows) \(index) WHERE tag >= ? AND tag <= ? ORDER BY tag, revision"
    fetchRowsOfIndex = "\(rows) \(index) ORDER BY tag, revision"
    // With a column that the index lacks SQLite has to read the table.
    fetchRowsOfTable = "SELECT tag, uuid, revision, sealed FROM \(item)"
    fetchItemKeys = "SELECT uuid, sealed FROM \(item)"
    insertItem = "INSERT INTO \(item) (uuid, tag, revision, sealed) VALUES (?, ?, ?, ?)"
    deleteItem = "DELETE FROM \(item) WHERE uuid = ?"
    let columns = "class_key, kind, parameters, wrapped"
    let (revision, newest) =
      format == .one
      ? ("NULL", "USING (uuid) WHERE item.uuid = ?")
      : (
        "secret.revision",
        "ON secret.uuid = item.uuid AND secret.part = 0 WHERE item.uuid = ? ORDER BY secret.revision DESC LIMIT 1"
      )
    fetchItemAndSecret =
      "SELECT item.tag, item.revision, item.sealed, \(columns), secret.sealed, \(revision) "
      + "FROM \(item) AS item LEFT JOIN \(secret) AS secret \(newest)"
    fetchSecret =
      format == .one
      ? "SELECT NULL, NULL, NULL, \(columns), sealed, NULL FROM \(secret) WHERE uuid = ?"
      : "SELECT NULL, NULL, NULL, \(columns), sealed, revision FROM \(secret) "
        + "WHERE uuid = ? AND part = ? AND revision = ?"
    insertSecret =
      "INSERT INTO \(secret) (uuid, part, revision, \(columns), sealed) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
    deleteSecrets = "DELETE FROM \(secret) WHERE uuid = ?"
    deleteSecret = "DELETE FROM \(secret) WHERE uuid = ? AND part = ? AND revision = ?"
    deleteNewestSecrets = "DELETE FROM \(secret) WHERE uuid = ? AND part = ? AND revision >= ?"
    fetchClassKeys =
      "SELECT id, class, \(format == .one ? "1" : "kind"), device, sealed FROM class_key\(suffix) ORDER BY id"
  }

  /// Copies the rows of an item as they are. Of format 1, the secret's revision is not known: such a row is damaged.
  package func copies(from old: Statements) -> [String] {
    [
      "INSERT INTO item\(suffix) (uuid, tag, revision, sealed) "
        + "SELECT uuid, tag, revision, sealed FROM item\(old.suffix) WHERE uuid = ?",
      "INSERT INTO secret\(suffix) (uuid, part, revision, class_key, kind, parameters, wrapped, sealed) "
        + "SELECT uuid, 0, 0, class_key, kind, parameters, wrapped, sealed FROM secret\(old.suffix) WHERE uuid = ?",
    ]
  }
}

extension Statements {
  private static let ofOne = Statements(.one)
  private static let ofOneReplaced = Statements(.one, suffix: replaced)
  private static let ofTwo = Statements(.two)
  private static let ofTwoReplaced = Statements(.two, suffix: replaced)

  fileprivate static func statements(_ format: VaultFormat, _ tables: VaultTables) -> Statements {
    switch (format, tables) {
    case (.one, .present): ofOne
    case (.one, .replaced): ofOneReplaced
    case (.two, .present): ofTwo
    case (.two, .replaced): ofTwoReplaced
    }
  }
}

extension VaultKeys {
  /// Those of the tables with the rows that the keys open.
  package var statements: Statements { .statements(format, tables) }
}
