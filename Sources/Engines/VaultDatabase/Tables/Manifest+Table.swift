package import GRDB
import Model
package import VaultRecords

extension Manifest {
  /// - Throws: `damaged` also where there is none.
  package static func fetch(_ database: Database, _ keys: VaultKeys) throws -> Manifest {
    let query = try Query(database, "SELECT sealed FROM manifest WHERE id = 1")
    guard try query.step() else { throw StoreError.damaged(what: "the manifest") }
    return try Manifest(opening: query.bytes(0), keys)
  }

  /// nil: it is damaged or gone.
  package static func fetchIfWhole(_ database: Database, _ keys: VaultKeys) throws -> Manifest? {
    do {
      return try fetch(database, keys)
    } catch StoreError.damaged {
      return nil
    }
  }

  /// Brings it and the hash tree to the rows that were changed, and stores it with digests of the tables as they are now, and
  /// the time.
  ///
  /// - Throws: as `DigestTable.update`.
  package mutating func store(_ database: Database, _ keys: VaultKeys) throws {
    try store(database, keys, with: Digests(database, keys))
  }

  /// The same with digests that were read in this transaction, after the last change of the tables.
  package mutating func store(_ database: Database, _ keys: VaultKeys, with digests: Digests) throws {
    try DigestTable(database: database, keys: keys).update(&self)
    let sealed = try seal(with: digests, keys)
    let query = try Query(database, "INSERT OR REPLACE INTO manifest (id, sealed) VALUES (1, ?)")
    query.bind(1, sealed)
    try query.run()
  }
}

extension Manifest.Digests {
  /// Those of the tables as they are.
  package init(_ database: Database, _ keys: VaultKeys) throws {
    let slots = try KeySlot.fetchAll(database, keys.format)
    self.init(slots, try ClassKeyRow.fetchAll(database, keys.statements), keys)
  }
}
