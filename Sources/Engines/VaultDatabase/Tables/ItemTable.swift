package import Crypto
import FoundationEssentials
package import GRDB
package import Model
import Store
package import VaultRecords

/// The rows with the items' metadata, during one transaction.
package struct ItemTable {
  package let database: Database
  package let keys: VaultKeys

  package init(database: Database, keys: VaultKeys) {
    (self.database, self.keys) = (database, keys)
  }

  /// A row and what it holds.
  package struct Row {
    package var key: ItemKey
    package var revision: UInt64
    package var record: ItemRecord

    package init(key: ItemKey, revision: UInt64, record: ItemRecord) {
      (self.key, self.revision, self.record) = (key, revision, record)
    }
  }

  /// The result of a walk over all rows.
  package struct ItemScan {
    package var items: [Item] = []
    package var damaged: [ItemKey] = []
    /// Rows without even a name.
    package var nameless = 0
    package var count: UInt64 = 0
    /// In format 1.
    package var sum = Witness()
    /// The newest one of a row that opens.
    package var lastRevision: UInt64 = 0
  }

  /// nil: there is no such item. - Throws: `damaged`.
  package func fetch(_ key: ItemKey) throws -> Row? {
    let query = try Query(database, keys.statements.fetchItem)
    query.bind(1, key)
    guard try query.step() else { return nil }
    return try open(query, key, under: keys.metadata)
  }

  /// The row with an identity; nil: there is none. - Throws: `damaged`.
  package func fetch(_ identity: ItemIdentity) throws -> Row? {
    guard let row = try fetchColumns(identity) else { return nil }
    let key = row.key
    return try fetch(key)
  }

  /// The columns of the row, also where what it holds is damaged; nil: there is no such item.
  package func fetchColumns(_ key: ItemKey) throws -> ItemRow? {
    let query = try Query(database, keys.statements.fetchRow)
    query.bind(1, key)
    return try query.step() ? query.itemRow(at: 0) : nil
  }

  /// The columns of the row with an identity; nil: there is none.
  package func fetchColumns(_ identity: ItemIdentity) throws -> ItemRow? {
    let query = try Query(database, keys.statements.fetchKeyOfItem)
    query.bind(1, keys.tag(of: identity))
    guard try query.step(), let key = query.key(0) else { return nil }
    return try fetchColumns(key)
  }

  /// Every row, opened; those that don't open are counted by what their columns say.
  package func scan(expecting expected: UInt64 = 0) throws -> ItemScan {
    var scan = ItemScan()
    // Growing by doubling would leave as much garbage again.
    scan.items.reserveCapacity(Int(min(expected, 100_000)))
    let metadata = keys.metadata
    let query = try Query(database, keys.statements.fetchAllItems)
    var limit = try RowLimit(database)
    while try query.step() {
      try limit.count()
      guard let key = query.key(3) else {
        scan.nameless += 1
        continue
      }
      scan.count += 1
      try count(query, key, metadata, into: &scan)
    }
    return scan
  }

  /// Stores the rows and their index once more, without those that have no key or no tag, and without damaged rules. Of two with the same key or tag, the
  /// one that opens is kept, then the newer one.
  ///
  /// `replacesTable`: not every page of the table and its index can be read.
  ///
  /// - Returns: how many rows are left.
  package func rebuild(replacingTable replacesTable: Bool) throws -> UInt64 {
    let rows = try rowsToKeep()
    if replacesTable {
      try Schema.replaceTable("item", database)
    } else {
      try database.execute(sql: "DELETE FROM item")
    }
    for row in rows {
      let query = try Query(database, keys.statements.insertItem)
      query.bind(1, row.columns.key)
      query.bind(2, row.columns.tag)
      query.bind(3, row.columns.revision)
      query.bind(4, row.content)
      try query.run()
    }
    return UInt64(rows.count)
  }

  private struct KeptRow {
    var columns: ItemRow
    var content: [UInt8]
    var opens: Bool

    func isBetter(than other: KeptRow?) -> Bool {
      guard let other, opens == other.opens else { return opens || other == nil }
      return columns.revision > other.columns.revision
    }
  }

  private func rowsToKeep() throws -> [KeptRow] {
    let rules = keys.tag(of: .rules)
    var byTag: [ItemTag: KeptRow] = [:]
    let query = try Query(database, keys.statements.fetchRowsOfTable)
    var limit = try RowLimit(database)
    while try query.step() {
      try limit.count()
      guard let columns = query.itemRow(at: 0) else { continue }
      let content = query.bytes(3)
      let isOpened = (try? open(content, columns, under: keys.metadata)) != nil
      // Another one could not be stored beside it.
      if !isOpened, columns.tag == rules { continue }
      let row = KeptRow(columns: columns, content: content, opens: isOpened)
      if row.isBetter(than: byTag[columns.tag]) { byTag[columns.tag] = row }
    }
    var byKey: [ItemKey: KeptRow] = [:]
    for row in byTag.values where row.isBetter(than: byKey[row.columns.key]) { byKey[row.columns.key] = row }
    return byKey.values.sorted { $0.columns.key < $1.columns.key }
  }

  /// Why `fetch` finds no row: where the order of the table is damaged, a walk over all rows still finds it.
  package func missing(_ key: ItemKey) throws -> StoreError {
    if let row = try? fetch(key), row.record.item.identity.isRemoved { return .notFound }
    return try allKeys().contains(key) ? .damaged(what: "item") : .notFound
  }

  /// The keys of all rows that have one.
  package func allKeys() throws -> [ItemKey] {
    let query = try Query(database, keys.statements.fetchItemKeys)
    var found: [ItemKey] = []
    while try query.step() { if let key = query.key(0) { found.append(key) } }
    return found
  }

  /// Whether any row opens under the keys.
  func opensAny() throws -> Bool {
    for key in try allKeys() where (try? fetch(key)) != nil { return true }
    return false
  }

  private func count(
    _ query: borrowing Query, _ key: ItemKey, _ metadata: SymmetricKey, into scan: inout ItemScan
  ) throws {
    do {
      let row = try open(query, key, under: metadata)
      scan.items.append(row.record.item)
      scan.lastRevision = max(scan.lastRevision, row.revision)
      guard keys.format == .one else { return }
      scan.sum += row.record.witness ?? keys.witness(of: key, revision: query.integer(1))
    } catch StoreError.damaged {
      if keys.format == .one { scan.sum += keys.witness(of: key, revision: query.integer(1)) }
      scan.damaged.append(key)
    }
  }

  /// - Returns: the columns of the row.
  /// - Throws: `exists` where another row has the identity.
  @discardableResult package func insert(_ row: Row) throws -> ItemRow {
    let tag = keys.tag(of: row.record.item.identity)
    guard try !contains(tag) else { throw StoreError.exists }
    let binding = Binding.metadata(
      keys.format, store: keys.store, item: row.key, revision: row.revision, tag: tag.bytes)
    let content = row.record.encoded
    guard content.count <= ItemRecord.largestSize else {
      throw StoreError.tooLarge(limit: ItemRecord.largestSize)
    }
    let query = try Query(database, keys.statements.insertItem)
    query.bind(1, row.key)
    query.bind(2, tag)
    query.bind(3, row.revision)
    query.bind(4, try Cipher.seal(content, under: keys.metadata, boundTo: binding.bytes))
    try query.run()
    return ItemRow(tag: tag, key: row.key, revision: row.revision)
  }

  private func contains(_ tag: ItemTag) throws -> Bool {
    let query = try Query(database, keys.statements.fetchKeyOfItem)
    query.bind(1, tag)
    return try query.step()
  }

  package func delete(_ key: ItemKey) throws {
    let query = try Query(database, keys.statements.deleteItem)
    query.bind(1, key)
    try query.run()
  }

  /// The row of a query that has tag, revision and blob in front.
  package func open(_ query: borrowing Query, _ key: ItemKey, under metadata: SymmetricKey) throws -> Row {
    try open(query.bytes(2), key, query.integer(1), query.bytes(0), under: metadata)
  }

  func open(_ content: [UInt8], _ columns: ItemRow, under metadata: SymmetricKey) throws -> Row {
    try open(content, columns.key, columns.revision, columns.tag.bytes, under: metadata)
  }

  private func open(
    _ content: [UInt8], _ key: ItemKey, _ revision: UInt64, _ tag: [UInt8], under metadata: SymmetricKey
  ) throws -> Row {
    keys.counts.items += 1
    let binding = Binding.metadata(keys.format, store: keys.store, item: key, revision: revision, tag: tag)
    let record = try Cipher.open(content, under: metadata, boundTo: binding.bytes) {
      try ItemRecord($0, id: key.id)
    }
    return Row(key: key, revision: revision, record: record)
  }
}

/// Ends a walk over rows that a damaged database never ends: pages that lead to each other.
struct RowLimit {
  private var rest: UInt64

  /// As many rows as the file has room for: each has a key and a tag.
  init(_ database: Database) throws {
    let query = try Query(
      database, "SELECT page_count * page_size / 40 FROM pragma_page_count, pragma_page_size")
    rest = try query.step() ? query.integer(0) : 0
  }

  /// - Throws: `damaged` at the row that is one too many.
  mutating func count() throws(StoreError) {
    guard rest > 0 else { throw .damaged(what: "the vault's database") }
    rest -= 1
  }
}
