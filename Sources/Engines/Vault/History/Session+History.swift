import Crypto
import GRDB
import Model
import SecretMemory
import Store
import VaultDatabase
import VaultRecords

// Reading versions. Each is named by the row of its item, for which the hash tree answers.
extension Session {
  func versions(of identity: ItemIdentity) throws(StoreError) -> [ItemVersion] {
    var found: [ItemVersion] = []
    for id in try idsWithVersions(of: identity) {
      found += try versions(ofItem: id)
    }
    return found.sorted { $0.number < $1.number }
  }

  /// The item that is there, and those that were removed: each is proven, or that there is none.
  private func idsWithVersions(of identity: ItemIdentity) throws(StoreError) -> [ItemID] {
    guard keys.format >= .two else { return [] }
    var ids = try item(with: identity).map { [$0.id] } ?? []
    var name = RemovedName(identity)
    while let item = try item(with: name.identity) {
      ids.append(item.id)
      name = name.next
    }
    return ids
  }

  private func versions(ofItem id: ItemID) throws(StoreError) -> [ItemVersion] {
    guard let key = ItemKey(id) else { return [] }
    return try read(key) { database in
      guard let row = try items(database).fetch(key) else { return [] }
      return try row.record.versions.compactMap { try version($0, of: row, versions(database)) }
    }
  }

  func version(_ id: ItemID) throws(StoreError) -> ItemVersion {
    guard let (item, number) = id.version, let key = ItemKey(item), keys.format >= .two else {
      throw .notFound
    }
    let found: ItemVersion? = try read(key) { database in
      guard let row = try items(database).fetch(key), row.record.versions.contains(number) else { return nil }
      return try version(number, of: row, versions(database))
    }
    guard let found else { throw .notFound }
    return found
  }

  func lastVersion(ofRemoved id: ItemID) throws(StoreError) -> ItemVersion? {
    guard let key = ItemKey(id), keys.format >= .two else { return nil }
    return try read(key) { database in
      guard let row = try items(database).fetch(key), row.record.item.identity.isRemoved,
        let newest = row.record.versions.last
      else { return nil }
      return try version(newest, of: row, versions(database))
    }
  }

  /// nil: it is kept for too long already, and deleted with the next change.
  private func version(
    _ revision: UInt64, of row: ItemTable.Row, _ table: VersionTable
  ) throws -> ItemVersion? {
    let record = try table.fetch(row.key, revision)
    guard let replacement = record.replacement else { throw StoreError.damaged(what: "a version of an item") }
    if let retention = history.retention, retention.isOver(replacement.time, at: .now) { return nil }
    var item = record.item
    item.id = ItemID(version: revision, of: row.key.id)
    return ItemVersion(
      number: revision, item: item, replaced: replacement.time,
      changes: VersionChanges(rawValue: replacement.changes))
  }

  /// A secret of a version as it is sealed, and its class key; nil: there is no such version, or it has no such secret.
  func sealedSecret(ofVersion id: ItemID, part: UInt8) throws(StoreError) -> (SealedSecret, SymmetricKey)? {
    guard let (item, number) = id.version, let key = ItemKey(item), keys.format >= .two else { return nil }
    return try read(key) { database in
      guard let row = try items(database).fetch(key), row.record.versions.contains(number),
        try version(number, of: row, versions(database)) != nil
      else { return nil }
      let record = try versions(database).fetch(key, number)
      guard let place = record.places(key).first(where: { $0.part == part }) else { return nil }
      let secrets = secrets(database)
      let sealed = try self.sealed(place, record, secrets)
      return (sealed, try secrets.classKey(of: sealed))
    }
  }

  /// - Throws: `accessDenied` for one that a backup has left out.
  func sealed(
    _ place: SecretPlace, _ record: ItemRecord, _ secrets: SecretTable
  ) throws -> SealedSecret {
    do {
      return try secrets.fetchSealed(place, record)
    } catch StoreError.damaged {
      guard record.item.accessibility.isBoundToDevice, (try? secrets.row(place)) == nil else {
        throw StoreError.damaged(what: "a secret")
      }
      throw StoreError.stayedOnItsDevice
    }
  }

  /// So many items with versions are looked at in one go.
  private static let page = 256

  func identitiesWithVersions() throws(StoreError) -> [ItemIdentity] {
    var found: Set<ItemIdentity> = []
    try forEachItemWithVersions { row, table in
      guard row.record.item.identity.isRemoved else {
        found.insert(row.record.item.identity)
        return
      }
      if let identity = try? identity(ofRemoved: row, table) { found.insert(identity) }
    }
    return Array(found)
  }

  private func forEachItemWithVersions(
    _ body: (ItemTable.Row, VersionTable) throws -> Void
  ) throws(StoreError) {
    guard keys.format >= .two else { return }
    var last: ItemKey?
    while true {
      let page = try connection.read { database in
        let page = try versions(database).items(after: last, limit: Self.page)
        for key in page {
          // One that does not open is among the problems already.
          guard let row = try? items(database).fetch(key), !row.record.versions.isEmpty else { continue }
          try body(row, versions(database))
        }
        return page
      }
      guard let end = page.last else { return }
      last = end
    }
  }
}

// MARK: - Deleting

extension Session {
  /// Returns how many versions were deleted.
  func purge(_ identity: ItemIdentity) throws(StoreError) -> Int {
    try usingReserve { () throws(StoreError) in
      try change { secrets, manifest in try purge(identity, secrets, &manifest) }
    }
  }

  func purgeAll() throws(StoreError) -> Int {
    let identities = try identitiesWithVersions()
    return try usingReserve { () throws(StoreError) in
      try change { secrets, manifest in
        try identities.reduce(0) { try $0 + purge($1, secrets, &manifest) }
      }
    }
  }

  private func purge(
    _ identity: ItemIdentity, _ secrets: SecretTable, _ manifest: inout Manifest
  ) throws -> Int {
    var count = 0
    isResidueDue = true
    for row in try removedRows(identity, items(secrets.database)).reversed() {
      count += row.record.versions.count
      try deleteRemoved(row, secrets, &manifest)
    }
    guard let row = try items(secrets.database).fetch(identity), !row.record.versions.isEmpty else {
      return count
    }
    try dropVersions(Set(row.record.versions), of: row, secrets, &manifest)
    return count + row.record.versions.count
  }

  /// Deletes versions that are kept for longer than they have to be.
  func prune() throws(StoreError) -> Int {
    guard let retention = history.retention, readOnlyReason == nil else { return 0 }
    let now = Timestamp.now
    var outdated: [ItemKey] = []
    try forEachItemWithVersions { row, table in
      let kept = try StoredVersions(row.key, row.record.versions, table)
      let limit = row.record.item.retention(retention)
      if !kept.dropped(from: row.record.versions, limit, at: now).isEmpty { outdated.append(row.key) }
    }
    var count = 0
    var rest = outdated[...]
    while !rest.isEmpty {
      let page = rest.prefix(Self.page)
      rest = rest.dropFirst(Self.page)
      count += try change { secrets, manifest in
        // Switched off, nothing of them is to stay; else they are only out of date.
        isResidueDue = !retention.keepsAny
        return try page.reduce(0) { try $0 + prune($1, retention, at: now, secrets, &manifest) }
      }
    }
    return count
  }

  private func prune(
    _ key: ItemKey, _ retention: HistoryRetention, at now: Timestamp, _ secrets: SecretTable,
    _ manifest: inout Manifest
  ) throws -> Int {
    guard let row = try items(secrets.database).fetch(key) else { return 0 }
    let table = versions(secrets.database)
    let kept = try StoredVersions(key, row.record.versions, table)
    let dropped = kept.dropped(from: row.record.versions, row.record.item.retention(retention), at: now)
    guard !dropped.isEmpty else { return 0 }
    try dropVersions(dropped, of: row, secrets, &manifest)
    return dropped.count
  }
}
