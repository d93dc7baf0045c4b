import GRDB
import Model
import Platform
import Store
import VaultDatabase
import VaultRecords

extension Session {
  /// Removes items. With a retention they are kept for a while, unless `isFinal`, or the disk is full: then the room is what
  /// counts.
  func remove(_ ids: [ItemID], forGood isFinal: Bool = false) throws(StoreError) {
    do {
      try delete(ids, forGood: isFinal)
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
      try delete(ids, forGood: true)
    } catch {
      guard error.isOutOfSpace else { throw error }
      connection.checkpoint()
      try delete(ids, forGood: true)
    }
  }

  private func delete(_ ids: [ItemID], forGood isFinal: Bool) throws(StoreError) {
    try change { secrets, manifest in
      for key in Set(ids.compactMap { ItemKey($0) }) {
        try delete(key, forGood: isFinal, secrets, &manifest)
      }
    }
  }

  /// Removes an item, as a part of a transaction; no error where it is gone already.
  func remove(_ id: ItemID, _ secrets: SecretTable, _ manifest: inout Manifest) throws {
    if let key = ItemKey(id) { try delete(key, forGood: false, secrets, &manifest) }
  }

  private func delete(
    _ key: ItemKey, forGood isFinal: Bool, _ secrets: SecretTable, _ manifest: inout Manifest
  ) throws {
    let items = items(secrets.database)
    guard let row = try items.fetchColumns(key) else {
      let reason = try items.missing(key)
      guard reason == .notFound else { throw reason }
      return
    }
    // One that does not open can't be kept.
    let opened = try? items.fetch(key)
    if opened?.record.item.identity.isRemoved == true { return }
    if !isFinal, let opened, try keepRemoved(opened, secrets, &manifest) { return }
    try deleteAll(of: row, secrets, &manifest)
  }

  /// Deletes an item's row, its versions and secrets.
  func deleteAll(of row: ItemRow, _ secrets: SecretTable, _ manifest: inout Manifest) throws {
    _ = try manifest.advance()
    manifest.remove(row)
    if row.tag == keys.tag(of: .rules) { manifest.hasRules = false }
    try items(secrets.database).delete(row.key)
    try secrets.delete(row.key)
    try versions(secrets.database).delete(row.key)
  }
}
