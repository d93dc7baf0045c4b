import Crypto
import FoundationEssentials
import GRDB
import Model
import SecretMemory

/// The rows with the items' secrets, during one transaction.
struct SecretTable {
  let database: Database
  let keys: VaultKeys
  let classKeys: ClassKeyring

  /// Ways to the key of a value; those not listed are reserved.
  private enum Kind {
    /// Sealed under the class key.
    static let classKey: UInt64 = 1
  }

  /// An item's secret. - Throws: `damaged` also where there is no row.
  func fetch(_ key: ItemKey, _ record: ItemRecord) throws -> SecretBytes {
    let query = try Query(
      database, "SELECT class_key, kind, parameters, wrapped, sealed FROM secret WHERE uuid = ?")
    query.bind(1, key.bytes)
    guard try query.step() else { throw StoreError.damaged(what: "a secret") }
    return try open(query, key, record)
  }

  /// Stores a secret under a new key of its own, in place of the item's present one.
  func put(_ secret: borrowing SecretBytes, _ key: ItemKey, _ record: ItemRecord) throws {
    let (id, classKey) = try classKeys.currentKey(record.item.accessibility, database)
    let binding = binding(key, record, classKey: id, kind: Kind.classKey, parameters: [])
    let valueKey = SymmetricKey(size: .bits256)
    let query = try Query(
      database,
      "INSERT OR REPLACE INTO secret (uuid, class_key, kind, parameters, wrapped, sealed) "
        + "VALUES (?, ?, ?, ?, ?, ?)")
    query.bind(1, key.bytes)
    query.bind(2, id)
    query.bind(3, Kind.classKey)
    query.bind(4, [])
    query.bind(5, try Sealing.seal(key: valueKey, under: classKey, boundTo: binding.bytes(.wrap)))
    query.bind(6, try Sealing.seal(secret: secret, under: valueKey, boundTo: binding.bytes(.value)))
    try query.run()
  }

  func delete(_ key: ItemKey) throws {
    let query = try Query(database, "DELETE FROM secret WHERE uuid = ?")
    query.bind(1, key.bytes)
    try query.run()
  }
}

extension SecretTable {
  private func open(
    _ query: borrowing Query, _ key: ItemKey, _ record: ItemRecord
  ) throws -> SecretBytes {
    let (id, kind, parameters) = (query.integer(0), query.integer(1), query.bytes(2))
    guard kind == Kind.classKey, parameters.isEmpty else { throw StoreError.damaged(what: "a secret") }
    let binding = binding(key, record, classKey: id, kind: kind, parameters: parameters)
    let classKey = try classKeys.key(id, record.item.accessibility, database)
    let valueKey = try unsafe Sealing.openKey(query.blob(3), under: classKey, boundTo: binding.bytes(.wrap))
    return try unsafe Sealing.openSecret(query.blob(4), under: valueKey, boundTo: binding.bytes(.value))
  }

  private func binding(
    _ key: ItemKey, _ record: ItemRecord, classKey: UInt64, kind: UInt64, parameters: [UInt8]
  ) -> SecretBinding {
    SecretBinding(
      store: keys.store, item: key, revision: record.secretRevision,
      accessibility: record.item.accessibility,
      access: AccessRules.digest(record.item.access, programs: record.item.programs),
      classKey: classKey, kind: kind, parameters: parameters)
  }
}
