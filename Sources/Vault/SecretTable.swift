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

  private static let fetchStatement =
    "SELECT item.tag, item.revision, item.sealed, secret.class_key, secret.kind, secret.parameters, "
    + "secret.wrapped, secret.sealed FROM item LEFT JOIN secret USING (uuid) WHERE item.uuid = ?"

  /// The secret of an item that is not being changed, as it is sealed; nil: there is no such item.
  ///
  /// One statement reads both rows, so that they belong together without a transaction's three more.
  /// - Throws: `damaged` also where the secret's row is missing.
  func fetch(_ key: ItemKey) throws -> SealedSecret? {
    let query = try Query(database, Self.fetchStatement)
    query.bind(1, key)
    guard try query.step() else { return nil }
    let row = try ItemTable(database: database, keys: keys).open(query, key, under: keys.metadata)
    return try sealed(query, key, SecretFacts(row.record))
  }

  /// The secret of an item whose row is at hand. - Throws: `damaged` also where its row is missing.
  func fetch(_ key: ItemKey, _ record: ItemRecord) throws -> SecretBytes {
    let query = try Query(
      database,
      "SELECT NULL, NULL, NULL, class_key, kind, parameters, wrapped, sealed FROM secret WHERE uuid = ?")
    query.bind(1, key)
    guard try query.step() else { throw StoreError.damaged(what: "a secret") }
    return try open(sealed(query, key, SecretFacts(record)))
  }

  func open(_ sealed: SealedSecret) throws -> SecretBytes {
    try sealed.open(under: classKeys.key(sealed.classKey, sealed.accessibility, database))
  }

  /// Stores a secret under a new key of its own, in place of the item's present one.
  func put(_ secret: borrowing SecretBytes, _ key: ItemKey, _ record: ItemRecord) throws {
    let (id, classKey) = try classKeys.currentKey(record.item.accessibility, database)
    var binding = binding(key, SecretFacts(record), classKey: id)
    let valueKey = SymmetricKey(size: .bits256)
    let query = try Query(
      database,
      "INSERT OR REPLACE INTO secret (uuid, class_key, kind, parameters, wrapped, sealed) "
        + "VALUES (?, ?, ?, ?, ?, ?)")
    query.bind(1, key)
    query.bind(2, id)
    query.bind(3, Kind.classKey)
    query.bind(4, [])
    query.bind(5, try Sealing.seal(key: valueKey, under: classKey, boundTo: binding.bytes))
    binding.purpose = .value
    query.bind(6, try Sealing.seal(secret: secret, under: valueKey, boundTo: binding.bytes))
    try query.run()
  }

  func delete(_ key: ItemKey) throws {
    let query = try Query(database, "DELETE FROM secret WHERE uuid = ?")
    query.bind(1, key)
    try query.run()
  }
}

extension SecretTable {
  private func sealed(_ query: borrowing Query, _ key: ItemKey, _ facts: SecretFacts) throws -> SealedSecret {
    guard query.integer(4) == Kind.classKey, unsafe query.blob(5).isEmpty else {
      throw StoreError.damaged(what: "a secret")
    }
    let id = query.integer(3)
    return try SealedSecret(
      classKey: id, accessibility: facts.accessibility, binding: binding(key, facts, classKey: id),
      wrapped: query.bytes(6), value: query.bytes(7))
  }

  private func binding(_ key: ItemKey, _ facts: SecretFacts, classKey: UInt64) -> SecretBinding {
    SecretBinding(
      store: keys.store, item: key, facts, classKey: classKey, kind: Kind.classKey, parameters: [])
  }
}

/// What an item's metadata say about how its secret is sealed.
struct SecretFacts {
  /// The revision that the secret is sealed to.
  var revision: UInt64
  var accessibility: Accessibility
  /// SHA-256 of who may see it: `AccessRules`.
  var access: [UInt8]

  init(_ record: ItemRecord) {
    revision = record.secretRevision
    accessibility = record.item.accessibility
    access = AccessRules.digest(record.item.access, programs: record.item.programs)
  }
}
