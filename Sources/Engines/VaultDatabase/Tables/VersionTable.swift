import FoundationEssentials
package import GRDB
import Model
package import VaultRecords

/// The rows with items' earlier versions, during one transaction: metadata as they were. Their secrets stay in the
/// table of secrets, sealed to the revision that these metadata name.
package struct VersionTable {
  package let database: Database
  package let keys: VaultKeys

  package init(database: Database, keys: VaultKeys) {
    (self.database, self.keys) = (database, keys)
  }

  /// - Throws: `damaged` also where there is no such version.
  package func fetch(_ item: ItemKey, _ revision: UInt64) throws -> ItemRecord {
    let query = try Query(database, "SELECT sealed FROM version WHERE uuid = ? AND revision = ?")
    query.bind(1, item)
    query.bind(2, revision)
    guard try query.step() else { throw StoreError.damaged(what: "a version of an item") }
    return try Cipher.open(
      query.bytes(0), under: keys.metadata, boundTo: binding(item, revision)
    ) { try ItemRecord($0, id: item.id) }
  }

  /// Stores a version, in place of one with the same revision.
  package func put(_ record: ItemRecord, _ item: ItemKey, _ revision: UInt64) throws {
    let query = try Query(
      database, "INSERT OR REPLACE INTO version (uuid, revision, sealed) VALUES (?, ?, ?)")
    query.bind(1, item)
    query.bind(2, revision)
    query.bind(
      3, try Cipher.seal(record.encoded, under: keys.metadata, boundTo: binding(item, revision)))
    try query.run()
  }

  /// Deletes all versions of an item.
  package func delete(_ item: ItemKey) throws {
    let query = try Query(database, "DELETE FROM version WHERE uuid = ?")
    query.bind(1, item)
    try query.run()
  }

  package func delete(_ item: ItemKey, _ revision: UInt64) throws {
    let query = try Query(database, "DELETE FROM version WHERE uuid = ? AND revision = ?")
    query.bind(1, item)
    query.bind(2, revision)
    try query.run()
  }

  /// Items that have a version, in the order of their keys, behind `last`: at most `limit`.
  package func items(after last: ItemKey?, limit: Int) throws -> [ItemKey] {
    let query = try Query(
      database, "SELECT DISTINCT uuid FROM version WHERE uuid > ? ORDER BY uuid LIMIT ?")
    query.bind(1, last?.bytes ?? [])
    query.bind(2, UInt64(limit))
    var found: [ItemKey] = []
    while try query.step() { if let key = query.key(0) { found.append(key) } }
    return found
  }

  private func binding(_ item: ItemKey, _ revision: UInt64) -> [UInt8] {
    Binding.version(store: keys.store, item: item, revision: revision).bytes
  }
}
