import Crypto
import FoundationEssentials
import GRDB
import Model
import SecretMemory
import Store

/// The rows with the items' secrets, during one transaction.
struct SecretTable {
  let database: Database
  let keys: VaultKeys
  let classKeys: ClassKeyring
  /// The password of the items that the transaction is about; nil: they have none.
  let password: PasswordSeal?

  /// Ways to the key of a value; those not listed are reserved.
  private enum Kind: UInt64 {
    /// Sealed under the class key.
    case classKey = 1
    /// Sealed under a key made of the item's password, and that under the class key.
    case password = 2
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
    try sealed.open(under: classKey(of: sealed), password)
  }

  func classKey(of sealed: SealedSecret) throws -> SymmetricKey {
    try classKeys.key(sealed.classKey, sealed.accessibility, database)
  }

  /// Stores a secret under a new key of its own, in place of the item's present one.
  ///
  /// - Throws: `accessDenied` for an item that is to have a password where there is none.
  func put(_ secret: borrowing SecretBytes, _ key: ItemKey, _ record: ItemRecord) throws {
    let (id, classKey) = try classKeys.currentKey(record.item.accessibility, database)
    let password = try record.item.access.needsPassword ? requiredPassword() : nil
    let (kind, parameters) = (password == nil ? Kind.classKey : .password, password?.parameters ?? [])
    let binding = binding(key, SecretFacts(record), classKey: id, kind, parameters)
    let valueKey = SymmetricKey(size: .bits256)
    let query = try Query(
      database,
      "INSERT OR REPLACE INTO secret (uuid, class_key, kind, parameters, wrapped, sealed) "
        + "VALUES (?, ?, ?, ?, ?, ?)")
    query.bind(1, key)
    query.bind(2, id)
    query.bind(3, kind.rawValue)
    query.bind(4, parameters)
    query.bind(5, try wrap(valueKey, under: classKey, binding, password, parameters))
    query.bind(
      6, try Sealing.seal(secret: secret, under: valueKey, boundTo: binding.bytes(for: .value)))
    try query.run()
  }

  func delete(_ key: ItemKey) throws {
    let query = try Query(database, "DELETE FROM secret WHERE uuid = ?")
    query.bind(1, key)
    try query.run()
  }
}

extension SecretTable {
  private func requiredPassword() throws(StoreError) -> PasswordSeal {
    guard let password else { throw .needsPassword }
    return password
  }

  private func wrap(
    _ valueKey: SymmetricKey, under classKey: SymmetricKey, _ binding: SecretBinding,
    _ password: PasswordSeal?, _ parameters: [UInt8]
  ) throws -> Data {
    guard let password else {
      return try Sealing.seal(key: valueKey, under: classKey, boundTo: binding.bytes)
    }
    let inside = binding.bytes(for: .password)
    let inner = try Sealing.seal(
      key: valueKey, under: password.key(parameters, info: inside), boundTo: inside)
    return try Sealing.seal(sealed: inner, under: classKey, boundTo: binding.bytes)
  }

  private func sealed(_ query: borrowing Query, _ key: ItemKey, _ facts: SecretFacts) throws -> SealedSecret {
    let (id, parameters) = (query.integer(3), query.bytes(5))
    guard let kind = Kind(rawValue: query.integer(4)), kind == .password || parameters.isEmpty else {
      throw StoreError.damaged(what: "a secret")
    }
    return try SealedSecret(
      classKey: id, accessibility: facts.accessibility,
      passwordParameters: kind == .password ? parameters : nil,
      binding: binding(key, facts, classKey: id, kind, parameters),
      wrapped: query.bytes(6), value: query.bytes(7))
  }

  private func binding(
    _ key: ItemKey, _ facts: SecretFacts, classKey: UInt64, _ kind: Kind, _ parameters: [UInt8]
  ) -> SecretBinding {
    SecretBinding(
      store: keys.store, item: key, facts, classKey: classKey, kind: kind.rawValue, parameters: parameters)
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
