import GRDB
import Model
import Platform
import Store
import VaultDatabase
import VaultRecords

extension Session {
  /// Removes items. With a retention they are kept for a while, unless `isFinal`.
  ///
  /// - Throws: `noRoomForVersion`: there is no room to keep them, also not in the reserve, and nothing is removed.
  func remove(_ ids: [ItemID], forGood isFinal: Bool = false) throws(StoreError) {
    let isKept = !isFinal && history.retention?.keepsAny == true
    do throws(StoreError) {
      // Pages are not zeroed, as that takes more of the log. Of what is kept, none is freed.
      let rest = isKept ? Self.restForPurging : 0
      try usingReserve(secureDelete: "FAST", rest: rest) { () throws(StoreError) in
        try delete(ids, forGood: isFinal)
      }
    } catch {
      guard error.isOutOfSpace, isKept else { throw error }
      throw .noRoomForVersion
    }
    directory.restoreReserve()
  }

  /// In bytes: so much of the reserve is for what is removed for good.
  private static let restForPurging = 128 * 1024

  /// Runs a change that a full disk must not keep from being made: a removal. The log's room and the reserve's are there for it.
  ///
  /// `secureDelete`: the value of SQLite's `secure_delete` where it has to do with the reserve. `rest`: how much of the reserve stays, in
  /// bytes.
  func usingReserve<Result>(
    secureDelete: String = "ON", rest: Int = 0, _ body: () throws(StoreError) -> Result
  ) throws(StoreError) -> Result {
    do throws(StoreError) { return try body() } catch {
      guard error.isOutOfSpace else { throw error }
    }
    try connection.run { try $0.execute(sql: "PRAGMA secure_delete = \(secureDelete)") }
    defer { try? connection.run { try $0.execute(sql: "PRAGMA secure_delete = ON") } }
    while true {
      // The log gives its room back only while the database has some to grow.
      connection.checkpoint()
      do throws(StoreError) {
        let result = try body()
        connection.checkpoint()
        return result
      } catch {
        guard error.isOutOfSpace, directory.reserve.giveUpHalf(rest: rest) else { throw error }
      }
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
