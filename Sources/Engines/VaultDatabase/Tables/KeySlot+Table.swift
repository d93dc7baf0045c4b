package import GRDB
package import VaultRecords

extension KeySlot {
  package static func fetchAll(_ database: Database, _ format: VaultFormat) throws -> [KeySlot] {
    let publicKey = format == .one ? "x''" : "public"
    let query = try Query(
      database,
      "SELECT id, kind, parameters, \(publicKey), commitment, sealed, checksum FROM slot ORDER BY id")
    var slots: [KeySlot] = []
    while try query.step() { slots.append(KeySlot(query)) }
    return slots
  }

  /// Puts `slots` in the place of all that are there.
  package static func replaceAll(with slots: [KeySlot], _ database: Database, _ format: VaultFormat) throws {
    try database.execute(sql: "DELETE FROM slot")
    for slot in slots { try slot.insert(database, format) }
  }

  package func insert(_ database: Database, _ format: VaultFormat) throws {
    let query = try Query(
      database,
      "INSERT INTO slot (id, kind, parameters, public, commitment, sealed, checksum) "
        + "VALUES (?, ?, ?, ?, ?, ?, ?)")
    query.bind(1, id)
    query.bind(2, kind)
    query.bind(3, parameters)
    query.bind(4, publicKey)
    query.bind(5, commitment)
    query.bind(6, sealed)
    query.bind(7, checksum)
    try query.run()
  }

  private init(_ query: borrowing Query) {
    self.init(
      id: query.integer(0), kind: query.integer(1), parameters: query.bytes(2), publicKey: query.bytes(3),
      commitment: query.bytes(4), sealed: query.bytes(5), checksum: query.bytes(6))
  }
}
