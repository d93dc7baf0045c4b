import GRDB
import Model
import Platform
import SecretMemory
import Store
import VaultDatabase
import VaultRecords

extension Session {
  /// `password`: what an item that has one is sealed with besides; so in the other calls.
  func add(
    _ item: Item, secret: borrowing SecretBytes, otpauth: borrowing SecretBytes,
    _ password: PasswordSeal? = nil
  ) throws(StoreError) -> Item {
    try change(password) { secrets, manifest in
      let added = try add(item, secret: secret, secrets, &manifest)
      guard let further = item.otpauth else { return added }
      return try setOtpauth(of: fetch(added.id, secrets.database), to: further, otpauth, secrets, &manifest)
    }
  }

  private func add(
    _ item: Item, secret: borrowing SecretBytes, _ secrets: SecretTable, _ manifest: inout Manifest
  ) throws -> Item {
    let record = ItemRecord(item: item, secretRevision: 0)
    let row = ItemTable.Row(key: .random(), revision: 0, record: record)
    return try put(row, with: secret, replacing: record, changing: [], secrets, &manifest)
  }

  /// Adds items and replaces others in one transaction.
  func apply(
    _ changes: [ItemChange], secret: (Int) throws(StoreError) -> SecretBytes
  ) throws(StoreError) -> [Item] {
    try change { secrets, manifest in
      var items: [Item] = []
      for (index, change) in changes.enumerated() {
        switch change {
        case .add(let item):
          items.append(try add(item, secret: secret(index), secrets, &manifest))
        case .rewrite(let id, let body):
          let old = try fetch(id, secrets.database)
          var row = old
          try body(&row.record.item)
          items.append(try replace(old, by: row, with: secret(index), secrets, &manifest))
        case .update(let id, let body):
          let old = try take(id, secrets.database, &manifest)
          var row = old
          try body(&row.record.item)
          items.append(try put(row, replacing: old.record, secrets, &manifest))
        case .remove(let id): try remove(id, secrets, &manifest)
        case .setOtpauth(let identity, let modified):
          let row = try self.items(secrets.database).fetch(identity).orNotFound()
          let further = FurtherSecret(modified: modified)
          items.append(try setOtpauth(of: row, to: further, secret(index), secrets, &manifest))
        }
      }
      return items
    }
  }

  func update(
    _ ids: [ItemID], _ password: PasswordSeal?,
    _ body: (inout Item) throws(StoreError) -> Void
  ) throws(StoreError) -> [Item] {
    var isPurge = false
    do throws(StoreError) {
      return try update(ids, password, &isPurge, body)
    } catch {
      // Switched off before items are removed for good: that has to be possible on a full disk.
      guard error.isOutOfSpace, isPurge else { throw error }
      return try usingReserve { () throws(StoreError) in try update(ids, password, &isPurge, body) }
    }
  }

  /// `isPurge`: the items keep no versions any more, and nothing else of them is changed.
  private func update(
    _ ids: [ItemID], _ password: PasswordSeal?, _ isPurge: inout Bool,
    _ body: (inout Item) throws(StoreError) -> Void
  ) throws(StoreError) -> [Item] {
    try change(password) { secrets, manifest in
      var rows: [(old: ItemRecord, new: ItemTable.Row)] = []
      for id in ids {
        let old = try take(id, secrets.database, &manifest)
        var new = old
        try body(&new.record.item)
        rows.append((old.record, new))
      }
      isPurge = rows.allSatisfy { old, new in new.record.item.isWithoutHistory(as: old.item) }
      // All rows are out of the table now, so that items may swap their names.
      return try rows.map { try put($0.new, replacing: $0.old, secrets, &manifest) }
    }
  }

  func rewrite(
    _ id: ItemID, readingSecret: Bool, _ password: PasswordSeal?,
    _ body: (inout Item, inout SecretBytes) throws(StoreError) -> Void
  ) throws(StoreError) -> Item {
    try change(password) { secrets, manifest in
      let old = try fetch(id, secrets.database)
      var row = old
      guard readingSecret else {
        var secret = try SecretBytes()
        try body(&row.record.item, &secret)
        return try replace(old, by: row, with: secret, secrets, &manifest)
      }
      let present = try secrets.fetch(row.key, row.record)
      var secret = try SecretBytes(copying: present)
      try body(&row.record.item, &secret)
      if secret == present, row.record.item == old.record.item { return old.record.item }
      return try replace(old, by: row, with: secret, secrets, &manifest)
    }
  }

  /// Seals an item's secret with another password.
  func reseal(_ id: ItemID, from present: PasswordSeal, to new: PasswordSeal) throws(StoreError) {
    try change(present) { secrets, manifest in
      let row = try fetch(id, secrets.database)
      guard row.record.item.access.needsPassword else {
        throw StoreError.invalidValue(reason: "the item has no password of its own")
      }
      let secret = try secrets.fetch(row.key, row.record)
      try take(row, secrets.database, &manifest)
      let sealing = self.secrets(secrets.database, new)
      _ = try put(
        row, with: secret, replacing: row.record, changing: .protection, sealing, openedBy: secrets, &manifest
      )
    }
    // The log would keep the old seal until it is written over.
    connection.checkpoint()
  }
}

extension Item {
  /// Whether it is another item with its history switched off.
  fileprivate func isWithoutHistory(as other: Item) -> Bool {
    var off = other
    off.attributes[Item.historyAttribute] = Array("0".utf8)
    return self == off
  }
}

extension Session {
  /// Takes an item's row out of the table.
  private func take(
    _ id: ItemID, _ database: Database, _ manifest: inout Manifest
  ) throws -> ItemTable.Row {
    let row = try fetch(id, database)
    try take(row, database, &manifest)
    return row
  }

  func take(_ row: ItemTable.Row, _ database: Database, _ manifest: inout Manifest) throws {
    let identity = row.record.item.identity
    manifest.remove(ItemRow(tag: keys.tag(of: identity), key: row.key, revision: row.revision))
    if identity == .rules { manifest.hasRules = false }
    try items(database).delete(row.key)
  }

  func fetch(_ id: ItemID, _ database: Database) throws -> ItemTable.Row {
    guard let key = ItemKey(id) else { throw StoreError.notFound }
    guard let row = try items(database).fetch(key) else { throw try items(database).missing(key) }
    guard !row.record.item.identity.isRemoved else { throw StoreError.notFound }
    return row
  }

  private func replace(
    _ old: ItemTable.Row, by new: ItemTable.Row, with secret: borrowing SecretBytes, _ secrets: SecretTable,
    _ manifest: inout Manifest
  ) throws -> Item {
    // A document is written with each value of its view; the same text is no version of it.
    let isSameText = try old.record.item.identity.isDocument && secrets.fetch(old.key, old.record) == secret
    try take(old, secrets.database, &manifest)
    return try put(
      new, with: secret, replacing: old.record, changing: isSameText ? [] : .value, secrets, &manifest)
  }

  /// Puts a changed row back; its secret is sealed again where it was bound to what changed.
  private func put(
    _ row: ItemTable.Row, replacing old: ItemRecord, _ secrets: SecretTable, _ manifest: inout Manifest
  ) throws -> Item {
    if row.record.item.hasSameAccess(as: old.item) {
      var row = row
      row.record.item.size = old.item.size
      let kept = try keepVersion(of: old, in: &row, [], secrets, &manifest)
      let record = try put(row, secrets.database, &manifest)
      if !old.versions.isEmpty { try deleteUnusedSecrets(row.key, record, secrets, kept: kept) }
      return record.item
    }
    return try put(
      row, with: secrets.fetch(row.key, old), replacing: old, changing: .protection, secrets, &manifest)
  }

  /// Puts a row back with another secret. `opener`: opens the further secrets where they have another password so far.
  /// `changes`: what the caller has changed besides attributes.
  private func put(
    _ row: ItemTable.Row, with secret: borrowing SecretBytes, replacing old: ItemRecord,
    changing changes: VersionChanges, _ secrets: SecretTable,
    openedBy opener: SecretTable? = nil, _ manifest: inout Manifest
  ) throws -> Item {
    try checkSize(secret)
    var row = row
    row.record.item.size = secret.count
    let kept = try keepVersion(of: old, in: &row, changes, secrets, &manifest)
    row.record.secretRevision = manifest.generation + 1
    // To seal an item's secret with its password, the others have to be opened.
    let sealsWithPassword = old.item.access.needsPassword && !old.furtherSecrets.isEmpty
    let changesSeal =
      opener != nil || sealsWithPassword || !row.record.item.hasSameAccess(as: old.item)
    if changesSeal { row.record.setRevisionOfFurtherSecrets(row.record.secretRevision) }
    let record = try put(row, secrets.database, &manifest)
    let hasVersions = !record.versions.isEmpty || !old.versions.isEmpty
    try secrets.put(secret, row.key, record, former: hasVersions ? nil : old.secretRevision)
    if changesSeal { try reseal(furtherSecretsOf: row.key, old, record, opener ?? secrets, secrets) }
    guard hasVersions else { return record.item }
    if changesSeal {
      try strengthenVersions(
        row.key, record, opener ?? secrets, secrets, otherPassword: opener != nil, &manifest)
    }
    try deleteUnusedSecrets(row.key, record, secrets, kept: changesSeal ? nil : kept)
    return record.item
  }

  /// Seals an item's further secrets as its main one: all are under the same rules.
  private func reseal(
    furtherSecretsOf key: ItemKey, _ old: ItemRecord, _ new: ItemRecord, _ opener: SecretTable,
    _ sealer: SecretTable
  ) throws {
    for (before, after) in zip(old.furtherSecrets, new.furtherSecrets) {
      var place = SecretPlace(item: key, part: before.part, revision: before.revision)
      let secret = try opener.open(opener.fetchSealed(place, old))
      place.revision = after.revision
      try sealer.put(secret, place, new, former: new.versions.isEmpty ? before.revision : nil)
    }
  }

  /// Puts a row into the table under the next revision.
  func put(
    _ row: ItemTable.Row, _ database: Database, _ manifest: inout Manifest
  ) throws -> ItemRecord {
    var row = row
    row.revision = try manifest.advance()
    row.record.item.id = row.key.id
    row.record.item.collection = nil
    row.record.settleOtpauth()
    // All items here are sealed.
    row.record.item.isSealed = false
    manifest.add(try items(database).insert(row))
    if row.record.item.identity == .rules { manifest.hasRules = true }
    return row.record
  }

  func checkSize(_ secret: borrowing SecretBytes) throws(StoreError) {
    guard secret.count <= VaultEngine.largestSecret else {
      throw .tooLarge(limit: VaultEngine.largestSecret)
    }
  }
}

extension ItemRecord {
  fileprivate mutating func setRevisionOfFurtherSecrets(_ revision: UInt64) {
    for index in furtherSecrets.indices { furtherSecrets[index].revision = revision }
  }
}
