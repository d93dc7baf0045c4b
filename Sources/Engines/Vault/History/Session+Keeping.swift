import Model
import SecretMemory
import Store
import VaultDatabase
import VaultRecords

// Versions are made in the transaction that replaces what they were: `VAULT.md`, "Versions".
extension Session {
  /// So many seconds after a change of attributes alone, another one makes no version of its own.
  private static let gathering: Int64 = 60

  /// Keeps what an item was before a change, as far as it is to be kept, and deletes the versions that are too many or too
  /// old. `row` still has the revision of `old`, and gets the list of its versions.
  ///
  /// `isRestoring`: an undo, which makes a version also right after another change, so that it can be taken back.
  ///
  /// Rows of secrets that no version needs any more are left to `deleteUnusedSecrets`. Returns the versions that are kept;
  /// nil: they were not looked at.
  @discardableResult
  func keepVersion(
    of old: ItemRecord, in row: inout ItemTable.Row, _ changes: VersionChanges, _ secrets: SecretTable,
    _ manifest: inout Manifest, isRestoring: Bool = false
  ) throws -> StoredVersions? {
    guard let retention = history.retention, row.revision > 0, old.item.identity.hasVersions else {
      return nil
    }
    let table = versions(secrets.database)
    guard row.record.item.retention(retention).keepsAny else {
      if row.record.versions.isEmpty { return nil }
      try table.delete(row.key)
      row.record.versions = []
      isResidueDue = true
      return nil
    }
    var kept = try storedVersions(row.key, row.record.versions, table)
    let changes = changes == .removal ? changes : changes.union(row.record.item.changes(since: old.item))
    if isVersion(old, row, changes, newest: isRestoring ? nil : kept.newest) {
      var version = old
      version.versions = []
      version.replacement = .init(time: .now, changes: changes.rawValue)
      _ = try manifest.advance()
      try table.put(version, row.key, row.revision)
      row.record.versions = old.versions + [row.revision]
      kept.records[row.revision] = version
    }
    let dropped = kept.dropped(
      from: row.record.versions, row.record.item.retention(retention), at: .now)
    for revision in dropped { try table.delete(row.key, revision) }
    row.record.versions.removeAll(where: dropped.contains)
    kept.keep(row.record.versions)
    openedVersions = OpenedVersions(item: row.key, versions: kept)
    return kept
  }

  /// The versions of an item, which are not opened again where the last commit was this process's and changed the same item.
  private func storedVersions(
    _ key: ItemKey, _ revisions: [UInt64], _ table: VersionTable
  ) throws -> StoredVersions {
    if let known = openedVersions, known.item == key, known.versions.areExactly(revisions),
      let mark = known.mark, mark == connection.commitMarkInTransaction()
    {
      return known.versions
    }
    return try StoredVersions(key, revisions, table)
  }

  /// Whether what an item was becomes a version: not what was never committed, and not each step of a series of attributes.
  private func isVersion(
    _ old: ItemRecord, _ row: ItemTable.Row, _ changes: VersionChanges, newest: ItemRecord?
  ) -> Bool {
    guard row.revision <= committed, !changes.subtracting(.name).isEmpty else { return false }
    guard changes.subtracting(.name) == .attributes, let last = newest?.replacement else { return true }
    let isSeries = VersionChanges(rawValue: last.changes).subtracting(.name) == .attributes
    let seconds = Timestamp.now.seconds &- last.time.seconds
    return !isSeries || seconds < 0 || seconds >= Self.gathering
  }

  /// Deletes the rows of an item's secrets that neither it nor a version of it has. Where a version is damaged, all stay.
  ///
  /// `kept`: its versions, where this transaction has opened them and has not sealed them again.
  func deleteUnusedSecrets(
    _ key: ItemKey, _ record: ItemRecord, _ secrets: SecretTable, kept: StoredVersions? = nil
  ) throws {
    let stored = try kept ?? StoredVersions(key, record.versions, versions(secrets.database))
    guard stored.areWhole else { return }
    let places = stored.records.values.reduce(into: Set(record.places(key))) { $0.formUnion($1.places(key)) }
    try secrets.deleteAll(of: key, but: places)
  }

  /// Seals versions again that are less protected than the item is now: by a weaker class, without a password where it has
  /// one, or with an earlier one. What can't be opened here stays as it is.
  ///
  /// `opener` has the password until now, `sealer` the one from now on.
  func strengthenVersions(
    _ key: ItemKey, _ record: ItemRecord, _ opener: SecretTable, _ sealer: SecretTable,
    otherPassword isOther: Bool, _ manifest: inout Manifest
  ) throws {
    openedVersions = nil
    let table = versions(sealer.database)
    var moved: [SecretPlace: UInt64] = [:]
    for (revision, version) in try StoredVersions(key, record.versions, table).records {
      guard var stronger = version.strengthened(by: record, otherPassword: isOther) else { continue }
      guard try reseal(version, as: &stronger, key, opener, sealer, &moved, &manifest) else { continue }
      _ = try manifest.advance()
      try table.put(stronger, key, revision)
    }
  }

  /// Seals the secrets of a version under new revisions; `moved` has those that another version has as well.
  ///
  /// - Returns: false where one of them does not open here.
  private func reseal(
    _ version: ItemRecord, as stronger: inout ItemRecord, _ key: ItemKey, _ opener: SecretTable,
    _ sealer: SecretTable, _ moved: inout [SecretPlace: UInt64], _ manifest: inout Manifest
  ) throws -> Bool {
    for place in version.places(key) {
      if let revision = moved[place] {
        stronger.setRevision(revision, ofPart: place.part)
        continue
      }
      guard let secret = try secretThatOpens(place, version, opener) else { return false }
      let revision = try manifest.advance()
      stronger.setRevision(revision, ofPart: place.part)
      try sealer.put(
        secret, SecretPlace(item: key, part: place.part, revision: revision), stronger, former: nil)
      moved[place] = revision
    }
    return true
  }

  private func secretThatOpens(
    _ place: SecretPlace, _ record: ItemRecord, _ opener: SecretTable
  ) throws -> SecretBytes? {
    do {
      return try opener.open(opener.fetchSealed(place, record))
    } catch let error as StoreError {
      switch error {
      case .damaged, .accessDenied, .rejected, .locked: return nil
      default: throw error
      }
    }
  }
}

/// The versions of the item that a session has changed last.
struct OpenedVersions {
  let item: ItemKey
  let versions: StoredVersions
  /// The moment of the commit; nil: it is not done.
  var mark: WALSnapshot?
}

/// The versions of an item, opened.
struct StoredVersions {
  /// By their revisions; damaged ones are missing.
  fileprivate(set) var records: [UInt64: ItemRecord]
  private(set) var areWhole: Bool

  init(_ key: ItemKey, _ revisions: [UInt64], _ table: VersionTable) throws {
    var records: [UInt64: ItemRecord] = [:]
    for revision in revisions {
      do {
        records[revision] = try table.fetch(key, revision)
      } catch StoreError.damaged {
        continue
      }
    }
    self.records = records
    areWhole = records.count == revisions.count
  }

  /// Leaves out those that are not among `revisions`, which are all that is stored now.
  mutating func keep(_ revisions: [UInt64]) {
    records = records.filter { revisions.contains($0.key) }
    areWhole = records.count == revisions.count
  }

  /// Whether they are whole, and those of `revisions`.
  func areExactly(_ revisions: [UInt64]) -> Bool {
    areWhole && records.count == revisions.count && revisions.allSatisfy { records[$0] != nil }
  }

  var newest: ItemRecord? { records.max { $0.key < $1.key }?.value }

  /// Those of `revisions`, ascending, that are not kept any longer.
  func dropped(from revisions: [UInt64], _ retention: HistoryRetention, at now: Timestamp) -> Set<UInt64> {
    let tooMany = revisions.dropLast(retention.versions)
    // A clock that was set back must not leave older versions than are deleted.
    let outdated = revisions.prefix { revision in
      guard let replacement = records[revision]?.replacement else { return false }
      return retention.isOver(replacement.time, at: now)
    }
    return Set(tooMany).union(outdated)
  }
}

extension ItemRecord {
  /// This version as it has to be sealed where the item is `record` now; nil: as it is.
  fileprivate func strengthened(by record: ItemRecord, otherPassword isOther: Bool) -> ItemRecord? {
    var stronger = self
    stronger.item.accessibility = item.accessibility.stricter(record.item.accessibility)
    if record.item.access.needsPassword, !item.access.needsPassword {
      stronger.item.access = AccessFlags(item.access.flags + [.applicationPassword])
    }
    let hasOtherPassword = isOther && item.access.needsPassword
    return hasOtherPassword || !stronger.item.hasSameAccess(as: item) ? stronger : nil
  }
}
