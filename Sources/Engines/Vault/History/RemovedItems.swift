import Crypto
import FoundationEssentials
import Model
import Store
import VaultDatabase
import VaultRecords

/// The names under which removed items stay in the table of items.
///
/// They follow from the identity that an item had, with a number where several of one identity were removed, without gaps.
struct RemovedName: Hashable {
  private let digest: String
  var number: Int

  init(_ identity: ItemIdentity, number: Int = 0) {
    var writer = FieldWriter()
    ItemRecord.put(identity, into: &writer)
    digest = SHA256.hash(data: writer.bytes).map { byte in
      let text = String(byte, radix: 16)
      return byte < 16 ? "0" + text : text
    }.joined()
    self.number = number
  }

  /// nil: not the name of a removed item.
  init?(removed identity: ItemIdentity) {
    guard identity.isRemoved, case .generic(_, let account) = identity else { return nil }
    let parts = account.string.split(separator: ".", maxSplits: 1)
    guard let first = parts.first else { return nil }
    digest = String(first)
    guard parts.count > 1 else {
      number = 0
      return
    }
    guard let number = Int(parts[1]) else { return nil }
    self.number = number
  }

  var identity: ItemIdentity {
    .removed(account: ExactString(number == 0 ? digest : "\(digest).\(number)"))
  }

  var next: RemovedName {
    var next = self
    next.number += 1
    return next
  }
}

// Removed items are rows of the table of items, so that the hash tree answers for them: an item of another name, which has its
// secrets as they were, and what it was as its newest version.
extension Session {
  /// Keeps an item that is being removed.
  ///
  /// - Returns: false where nothing is kept of it.
  func keepRemoved(
    _ row: ItemTable.Row, _ secrets: SecretTable, _ manifest: inout Manifest
  ) throws -> Bool {
    let (item, database) = (row.record.item, secrets.database)
    guard let retention = history.retention.map({ item.retention($0) }), retention.keepsAny,
      item.identity.hasVersions
    else { return false }
    var name = RemovedName(item.identity)
    while try items(database).fetchColumns(name.identity) != nil { name = name.next }
    try take(row, database, &manifest)
    var removed = row
    (removed.record.item.label, removed.record.item.attributes) = (nil, [:])
    (removed.record.item.identity, removed.record.item.modified) = (name.identity, .now)
    try keepVersion(of: row.record, in: &removed, .removal, secrets, &manifest)
    // A state that was never committed is no version otherwise.
    guard removed.record.versions.last == row.revision else {
      throw StoreError.damaged(what: "a version of an item")
    }
    let record = try put(removed, database, &manifest)
    try deleteUnusedSecrets(row.key, record, secrets)
    try limitRemoved(item.identity, retention, secrets, &manifest)
    return true
  }

  /// The rows of removed items with an identity, in the order of their numbers.
  func removedRows(_ identity: ItemIdentity, _ items: ItemTable) throws -> [ItemTable.Row] {
    var rows: [ItemTable.Row] = []
    var name = RemovedName(identity)
    while let row = try items.fetch(name.identity) {
      rows.append(row)
      name = name.next
    }
    return rows
  }

  /// The identity that a removed item had, of its newest version. - Throws: `damaged`.
  func identity(ofRemoved row: ItemTable.Row, _ versions: VersionTable) throws -> ItemIdentity {
    guard let newest = row.record.versions.last else { throw StoreError.damaged(what: "a removed item") }
    return try versions.fetch(row.key, newest).item.identity
  }

  /// Of all removed items of one identity, no more versions are kept than of one item.
  private func limitRemoved(
    _ identity: ItemIdentity, _ retention: HistoryRetention, _ secrets: SecretTable,
    _ manifest: inout Manifest
  ) throws {
    let rows = try removedRows(identity, items(secrets.database))
    let revisions = rows.flatMap(\.record.versions).sorted()
    let dropped = Set(revisions.dropLast(retention.versions))
    guard !dropped.isEmpty else { return }
    for row in rows.reversed() where !dropped.isDisjoint(with: row.record.versions) {
      try dropVersions(dropped, of: row, secrets, &manifest)
    }
  }

  /// Deletes versions of an item. A removed item without its newest one is deleted as a whole: nothing names it any more.
  func dropVersions(
    _ dropped: Set<UInt64>, of row: ItemTable.Row, _ secrets: SecretTable, _ manifest: inout Manifest
  ) throws {
    var changed = row
    changed.record.versions.removeAll(where: dropped.contains)
    if changed.record.versions.isEmpty, row.record.item.identity.isRemoved {
      return try deleteRemoved(row, secrets, &manifest)
    }
    for revision in row.record.versions where dropped.contains(revision) {
      try versions(secrets.database).delete(row.key, revision)
    }
    try take(row, secrets.database, &manifest)
    let record = try put(changed, secrets.database, &manifest)
    try deleteUnusedSecrets(row.key, record, secrets)
  }

  /// Deletes a removed item; the last one of its identity takes its number.
  func deleteRemoved(
    _ row: ItemTable.Row, _ secrets: SecretTable, _ manifest: inout Manifest
  ) throws {
    guard let columns = try items(secrets.database).fetchColumns(row.key) else { return }
    try deleteAll(of: columns, secrets, &manifest)
    try closeGap(row.record.item.identity, secrets, &manifest)
  }

  /// Gives the last removed item of an identity the name of one that is gone.
  func closeGap(
    _ gap: ItemIdentity, _ secrets: SecretTable, _ manifest: inout Manifest
  ) throws {
    guard var name = RemovedName(removed: gap) else { return }
    var last: ItemTable.Row?
    while let row = try items(secrets.database).fetch(name.next.identity) {
      last = row
      name = name.next
    }
    guard var moved = last else { return }
    try take(moved, secrets.database, &manifest)
    moved.record.item.identity = gap
    _ = try put(moved, secrets.database, &manifest)
  }
}
