package import GRDB
package import VaultRecords

extension ClassKeyRow {
  package static func fetchAll(_ database: Database, _ statements: Statements) throws -> [ClassKeyRow] {
    let query = try Query(database, statements.fetchClassKeys)
    var rows: [ClassKeyRow] = []
    while try query.step() {
      rows.append(
        ClassKeyRow(
          id: query.integer(0), accessibility: query.integer(1), kind: query.integer(2),
          device: query.bytes(3), sealed: query.bytes(4)))
    }
    return rows
  }

  package func insert(_ database: Database) throws {
    let query = try Query(
      database, "INSERT INTO class_key (id, class, kind, device, sealed) VALUES (?, ?, ?, ?, ?)")
    query.bind(1, id)
    query.bind(2, accessibility)
    query.bind(3, kind)
    query.bind(4, device)
    query.bind(5, sealed)
    try query.run()
  }
}
