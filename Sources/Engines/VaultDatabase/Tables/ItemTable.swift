package import Crypto
import FoundationEssentials
package import GRDB
package import Model
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
    package var sum = Witness()
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
    let query = try Query(database, keys.statements.fetchKeyOfItem)
    query.bind(1, keys.tag(of: identity))
    guard try query.step(), let key = query.key(0) else { return nil }
    return try fetch(key)
  }

  /// The revision that the row says it has, also where the rest of it is damaged.
  package func revision(_ key: ItemKey) throws -> UInt64? {
    let query = try Query(database, keys.statements.fetchRevision)
    query.bind(1, key)
    return try query.step() ? query.integer(0) : nil
  }

  /// Every row, opened; those that don't open are counted by what their columns say.
  package func scan(expecting expected: UInt64 = 0) throws -> ItemScan {
    var scan = ItemScan()
    // Growing by doubling would leave as much garbage again.
    scan.items.reserveCapacity(Int(min(expected, 100_000)))
    let metadata = keys.metadata
    let query = try Query(database, keys.statements.fetchAllItems)
    while try query.step() {
      guard let key = query.key(3) else {
        scan.nameless += 1
        continue
      }
      scan.count += 1
      scan.lastRevision = max(scan.lastRevision, query.integer(1))
      try count(query, key, metadata, into: &scan)
    }
    return scan
  }

  /// Why `fetch` finds no row: where the order of the table is damaged, a walk over all rows still finds it.
  package func missing(_ key: ItemKey) throws -> StoreError {
    try allKeys().contains(key) ? .damaged(what: "item") : .notFound
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
      scan.sum += row.record.witness
      scan.items.append(row.record.item)
    } catch StoreError.damaged {
      scan.sum += keys.witness(of: key, revision: query.integer(1))
      scan.damaged.append(key)
    }
  }

  /// - Throws: `exists` where another row has the identity.
  package func insert(_ row: Row) throws {
    let tag = keys.tag(of: row.record.item.identity)
    let binding = Binding.metadata(
      keys.format, store: keys.store, item: row.key, revision: row.revision, tag: tag)
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
  }

  package func delete(_ key: ItemKey) throws {
    let query = try Query(database, keys.statements.deleteItem)
    query.bind(1, key)
    try query.run()
  }

  /// The row of a query that has tag, revision and blob in front.
  package func open(_ query: borrowing Query, _ key: ItemKey, under metadata: SymmetricKey) throws -> Row {
    let revision = query.integer(1)
    let binding = Binding.metadata(
      keys.format, store: keys.store, item: key, revision: revision, tag: query.bytes(0))
    let record = try Cipher.open(query.bytes(2), under: metadata, boundTo: binding.bytes) {
      try ItemRecord($0, id: key.id)
    }
    return Row(key: key, revision: revision, record: record)
  }
}
