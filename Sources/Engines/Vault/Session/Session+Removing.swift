import GRDB
import Model
import Platform
import Store
import VaultDatabase
import VaultRecords

extension Session {
  func remove(_ ids: [ItemID]) throws(StoreError) {
    do {
      try delete(ids)
    } catch {
      guard error.isOutOfSpace else { throw error }
      try deleteWithoutRoom(ids)
    }
    directory.restoreReserve()
  }

  /// The log's room and the reserve's are there for it. Pages are not zeroed, as that takes more of the log.
  private func deleteWithoutRoom(_ ids: [ItemID]) throws(StoreError) {
    try connection.run { try $0.execute(sql: "PRAGMA secure_delete = FAST") }
    defer { try? connection.run { try $0.execute(sql: "PRAGMA secure_delete = ON") } }
    directory.reserve.giveUp()
    do {
      try delete(ids)
    } catch {
      guard error.isOutOfSpace else { throw error }
      connection.checkpoint()
      try delete(ids)
    }
  }

  private func delete(_ ids: [ItemID]) throws(StoreError) {
    try change { secrets, manifest in
      let items = items(secrets.database)
      for key in Set(ids.compactMap { ItemKey($0) }) {
        guard let row = try items.fetchColumns(key) else {
          let reason = try items.missing(key)
          guard reason == .notFound else { throw reason }
          continue
        }
        _ = try manifest.advance()
        manifest.remove(row)
        if row.tag == keys.tag(of: .rules) { manifest.hasRules = false }
        try items.delete(key)
        try secrets.delete(key)
        try versions(secrets.database).delete(key)
      }
    }
  }
}
