import GRDB
import Model
import Store
import VaultDatabase
import VaultRecords

// Single items of a vault of which not all were read: each is proven by the hash tree.
extension Session {
  /// nil: there is no such item. - Throws: `damaged`.
  func item(with identity: ItemIdentity) throws(StoreError) -> Item? {
    let tag = keys.tag(of: identity)
    let item: Item?? = try read { database in
      try items(database).fetch(identity)?.record.item
    } provenBy: { database in
      guard let rows = try provenRows(with: tag, database) else { return false }
      return try rows.first { $0.tag == tag } == items(database).fetchColumns(identity)
    } otherwise: { items in
      items.first { $0.identity == identity }
    }
    return item ?? nil
  }

  /// nil: there is no such item. - Throws: `damaged`.
  func item(_ id: ItemID) throws(StoreError) -> Item? {
    guard let key = ItemKey(id) else { return nil }
    let item: Item?? = try read { database in
      try items(database).fetch(key)?.record.item
    } provenBy: { database in
      try isProven(key, database)
    } otherwise: { items in
      items.first { $0.id == id }
    }
    return item ?? nil
  }

  /// Reads what belongs to an item.
  func read<Result>(_ key: ItemKey, _ body: (Database) throws -> Result) throws(StoreError) -> Result {
    let result: Result? = try read(body) { database in
      try isProven(key, database)
    } otherwise: { _ in
      nil
    }
    if let result { return result }
    return try connection.run(body)
  }

  private func isProven(_ key: ItemKey, _ database: Database) throws -> Bool {
    // That there is no row with a key the hash tree does not prove: of many it is left to the reading of all.
    guard let row = try items(database).fetchColumns(key) else { return known != nil || isSlowToRead }
    if known?.contains(row) == true { return true }
    return try provenRows(with: row.tag, database)?.contains(row) ?? false
  }

  /// Runs `body`: as long as not all items were read just now, in the transaction that `proof` belongs to. Where that returns
  /// false, all items are read, so that what is wrong with the vault is known, and `fallback` gets them.
  private func read<Result>(
    _ body: (Database) throws -> Result, provenBy proof: (Database) throws -> Bool,
    otherwise fallback: ([Item]) -> Result?
  ) throws(StoreError) -> Result? {
    guard isUnread || known != nil else { return try connection.run(body) }
    if isUnread { try judgeIfTouched() }
    let proven = try connection.read { database -> Result? in
      try isFalseWhereDamaged { try proof(database) } ? try body(database) : nil
    }
    if let proven { return proven }
    return try fallback(reloadAsNews())
  }

  /// The rows of the leaf of a tag; nil: they are not those of the manifest, or it is not as this device last saw it.
  private func provenRows(with tag: ItemTag, _ database: Database) throws -> [ItemRow]? {
    guard let manifest = try Manifest.fetchIfWhole(database, keys), manifest.generation >= anchor.generation,
      try manifest.reasonForDistrust(Manifest.Digests(database, keys)) == nil
    else { return nil }
    try classKeys.follow(manifest.classKeys, database)
    return try DigestTable(database: database, keys: keys).rows(ofLeafWith: tag, manifest)
  }
}
