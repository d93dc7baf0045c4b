package import Crypto
import FoundationEssentials
package import GRDB
package import Model
package import SecretMemory
import Store
package import VaultRecords

/// The rows with the items' secrets, during one transaction.
package struct SecretTable {
  package let database: Database
  package let keys: VaultKeys
  package let classKeys: ClassKeyring
  /// The password of the items that the transaction is about; nil: they have none.
  package let password: PasswordSeal?

  package init(database: Database, keys: VaultKeys, classKeys: ClassKeyring, password: PasswordSeal?) {
    (self.database, self.keys) = (database, keys)
    (self.classKeys, self.password) = (classKeys, password)
  }

  /// The secret of an item that is not being changed, as it is sealed; nil: there is no such item.
  ///
  /// One statement reads both rows, so that they belong together without a transaction's three more.
  /// - Throws: `damaged` also where the secret's row is missing, or an older one is in its place.
  package func fetch(_ key: ItemKey) throws -> SealedSecret? {
    let query = try Query(database, keys.statements.fetchItemAndSecret)
    query.bind(1, key)
    guard try query.step() else { return nil }
    let record = try ItemTable(database: database, keys: keys).open(query, key, under: keys.metadata).record
    guard !record.item.identity.isRemoved else { return nil }
    // A backup leaves them out.
    guard query.isBlob(7) || !record.item.accessibility.isBoundToDevice else {
      throw StoreError.stayedOnItsDevice
    }
    let place = SecretPlace(item: key, revision: record.secretRevision)
    // A version that was sealed again has a newer one.
    if keys.format >= .two, query.integer(8) != place.revision { return try fetchSealed(place, record) }
    return try sealed(query, place, SecretFacts(record))
  }

  /// A secret of an item whose metadata are at hand, as it is sealed. - Throws: `damaged` also where its row is missing.
  package func fetchSealed(_ place: SecretPlace, _ record: ItemRecord) throws -> SealedSecret {
    try withRow(place) { try sealed($0, place, SecretFacts(record)) }
  }

  /// The main secret of an item whose row is at hand. - Throws: `damaged` also where its row is missing.
  package func fetch(_ key: ItemKey, _ record: ItemRecord) throws -> SecretBytes {
    try open(fetchSealed(SecretPlace(item: key, revision: record.secretRevision), record))
  }

  package func open(_ sealed: SealedSecret) throws -> SecretBytes {
    try sealed.open(under: classKey(of: sealed), password)
  }

  package func classKey(of sealed: SealedSecret) throws -> SymmetricKey {
    try classKeys.key(sealed.classKey, sealed.accessibility, database)
  }

  /// Stores an item's main secret under a new key of its own, in place of the present one, which was sealed to the
  /// revision `former`; nil: that one is a version's too, and stays until `deleteAll(of:but:)`.
  ///
  /// - Throws: `accessDenied` for an item that is to have a password where there is none.
  package func put(
    _ secret: borrowing SecretBytes, _ key: ItemKey, _ record: ItemRecord, former: UInt64?
  ) throws {
    try put(secret, SecretPlace(item: key, revision: record.secretRevision), record, former: former)
  }

  /// The same for any secret of an item.
  package func put(
    _ secret: borrowing SecretBytes, _ place: SecretPlace, _ record: ItemRecord, former: UInt64?
  ) throws {
    let (id, classKey) = try classKeys.currentKey(record.item.accessibility, database)
    let password = try record.item.access.needsPassword ? requiredPassword() : nil
    let (kind, parameters) = (password == nil ? SecretKind.classKey : .password, password?.parameters ?? [])
    let binding = binding(.two, place, SecretFacts(record), classKey: id, kind, parameters)
    let valueKey = SymmetricKey(size: .bits256)
    let row = SecretRow(
      place: place, classKey: id, kind: kind.rawValue, parameters: parameters,
      wrapped: Array(try wrap(valueKey, under: classKey, binding, password, parameters)),
      sealed: Array(
        try Cipher.seal(secret: secret, under: valueKey, boundTo: binding.bytes(for: .value))))
    if let former { try deleteNewest(place, from: former) }
    try row.insert(database, keys.statements)
  }

  /// Whether an item has any secret.
  package func hasSecret(_ key: ItemKey) throws -> Bool {
    let query = try Query(database, "SELECT 1 FROM secret WHERE uuid = ? LIMIT 1")
    query.bind(1, key)
    return try query.step()
  }

  /// Deletes all secrets of an item.
  package func delete(_ key: ItemKey) throws {
    let query = try Query(database, keys.statements.deleteSecrets)
    query.bind(1, key)
    try query.run()
  }

  /// Deletes the secrets of an item that are not in `kept`.
  package func deleteAll(of key: ItemKey, but kept: Set<SecretPlace>) throws {
    for place in try places(of: key) where !kept.contains(place) {
      let query = try Query(database, keys.statements.deleteSecret)
      query.bind(1, key)
      query.bind(2, UInt64(place.part))
      query.bind(3, place.revision)
      try query.run()
    }
  }

  private func places(of key: ItemKey) throws -> [SecretPlace] {
    let query = try Query(database, "SELECT part, revision FROM secret WHERE uuid = ?")
    query.bind(1, key)
    var places: [SecretPlace] = []
    while try query.step() {
      guard let part = UInt8(exactly: query.integer(0)) else { continue }
      places.append(SecretPlace(item: key, part: part, revision: query.integer(1)))
    }
    return places
  }

  package func deleteNewest(_ place: SecretPlace, from revision: UInt64) throws {
    let query = try Query(database, keys.statements.deleteNewestSecrets)
    query.bind(1, place.item)
    query.bind(2, UInt64(place.part))
    query.bind(3, revision)
    try query.run()
  }
}

extension SecretTable {
  /// A row as it is stored. - Throws: `damaged` where it is missing.
  package func row(_ place: SecretPlace) throws -> SecretRow {
    try withRow(place) { query in
      SecretRow(
        place: place, classKey: query.integer(3), kind: query.integer(4), parameters: query.bytes(5),
        wrapped: query.bytes(6), sealed: query.bytes(7))
    }
  }

  private func withRow<Result>(
    _ place: SecretPlace, _ body: (borrowing Query) throws -> Result
  ) throws -> Result {
    let query = try Query(database, keys.statements.fetchSecret)
    query.bind(1, place.item)
    if keys.format >= .two {
      query.bind(2, UInt64(place.part))
      query.bind(3, place.revision)
    }
    guard try query.step() else { throw StoreError.damaged(what: "a secret") }
    return try body(query)
  }

  /// The bindings of a row's seals, under its class key and inside.
  package func bindings(
    _ place: SecretPlace, _ facts: SecretFacts, classKey: UInt64, _ kind: SecretKind, _ parameters: [UInt8]
  ) -> (outer: SecretBinding, inner: SecretBinding) {
    (
      binding(kind.outerFormat, place, facts, classKey: classKey, kind, parameters),
      binding(kind.innerFormat, place, facts, classKey: classKey, kind, parameters)
    )
  }

  private func requiredPassword() throws(StoreError) -> PasswordSeal {
    guard let password else { throw .needsPassword }
    return password
  }

  private func wrap(
    _ valueKey: SymmetricKey, under classKey: SymmetricKey, _ binding: SecretBinding,
    _ password: PasswordSeal?, _ parameters: [UInt8]
  ) throws -> Data {
    guard let password else {
      return try Cipher.seal(key: valueKey, under: classKey, boundTo: binding.bytes)
    }
    let inside = binding.bytes(for: .password)
    let inner = try Cipher.seal(
      key: valueKey, under: password.key(parameters, info: inside), boundTo: inside)
    return try Cipher.seal(sealed: inner, under: classKey, boundTo: binding.bytes)
  }

  private func sealed(
    _ query: borrowing Query, _ place: SecretPlace, _ facts: SecretFacts
  ) throws -> SealedSecret {
    let (id, parameters) = (query.integer(3), query.bytes(5))
    let kind = try SecretKind(query.integer(4), in: keys.format)
    guard kind.takesPassword || parameters.isEmpty,
      keys.format == .one || query.integer(8) == place.revision
    else { throw StoreError.damaged(what: "a secret") }
    let bindings = bindings(place, facts, classKey: id, kind, parameters)
    return try SealedSecret(
      classKey: id, accessibility: facts.accessibility,
      passwordParameters: kind.takesPassword ? parameters : nil, outer: bindings.outer,
      inner: bindings.inner, wrapped: query.bytes(6), value: query.bytes(7))
  }

  private func binding(
    _ format: VaultFormat, _ place: SecretPlace, _ facts: SecretFacts, classKey: UInt64, _ kind: SecretKind,
    _ parameters: [UInt8]
  ) -> SecretBinding {
    SecretBinding(
      format, store: keys.store, place, facts, classKey: classKey, kind: kind.number(in: format),
      parameters: parameters)
  }
}

extension StoreError {
  package static let stayedOnItsDevice = StoreError.accessDenied(
    reason: "its secret stayed on the device that stored it: set it again, or remove the item")
}

/// A row of the table of secrets.
package struct SecretRow {
  package var place: SecretPlace
  package var classKey: UInt64
  package var kind: UInt64
  package var parameters: [UInt8]
  package var wrapped: [UInt8]
  package var sealed: [UInt8]

  package func insert(_ database: Database, _ statements: Statements) throws {
    let query = try Query(database, statements.insertSecret)
    query.bind(1, place.item)
    query.bind(2, UInt64(place.part))
    query.bind(3, place.revision)
    query.bind(4, classKey)
    query.bind(5, kind)
    query.bind(6, parameters)
    query.bind(7, wrapped)
    query.bind(8, sealed)
    try query.run()
  }
}
