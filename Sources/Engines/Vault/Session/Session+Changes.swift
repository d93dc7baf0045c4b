import GRDB
import Model
import Store
import VaultDatabase
import VaultRecords

// Changes by other processes: of many items those are read whose leaf of the hash tree is another one, else all.
extension Session {
  /// The changes by other processes since `items`, or since this was called last. `isTouched`: something else than a
  /// commit may have written to the file.
  func changes(isTouched: Bool = false) throws(StoreError) -> ExternalChanges {
    if isNews {
      isNews = false
      return .everything(try items())
    }
    // First of all: what SQLite keeps of the file may not even be a database.
    if isTouched { try connection.dropCache() }
    let isTold = try isTold()
    if !isTold { connection.noteForeignCommit() }
    guard isTouched || !isTold else { return .none }
    if let changes = try changesOfLeaves() { return changes }
    return .everything(try load())
  }

  /// The next call of `changes` reports what the file holds.
  func forgetTold() { (toldVersion, told) = (nil, nil) }

  /// Whether the last items that `changes` or `items` reported are the present ones, but for this process's own commits.
  private func isTold() throws(StoreError) -> Bool {
    if let told, told == connection.commitMark() { return true }
    return try version() == toldVersion
  }

  func version() throws(StoreError) -> UInt64 {
    try connection.run { try Connection.dataVersion($0) }
  }

  /// Reads all from the file again, which something else than a commit has written to.
  func reload() throws(StoreError) -> [Item] {
    try connection.dropCache()
    return try load()
  }

  /// The same; the next call of `changes` reports what was read.
  @discardableResult func reloadAsNews() throws(StoreError) -> [Item] {
    let items = try reload()
    (untold, isNews) = (items, true)
    return items
  }

  /// nil: not all rows are known, or what has changed is not proven: then all have to be read.
  ///
  /// Rows that were edited in a leaf that has not changed are found by `verification` only.
  private func changesOfLeaves() throws(StoreError) -> ExternalChanges? {
    guard let known else { return nil }
    var changes: LeafChanges?
    let (found, anchored) = try look { database, found in
      guard let manifest = found.manifest, manifest.generation >= anchor.generation,
        manifest.reasonForDistrust(found.digests) == nil
      else { return false }
      changes = try compare(database, manifest, known)
      return changes != nil
    }
    guard let found, let changes else { return nil }
    known.take(changes.difference, keys)
    let changed = changes.difference.gone.union(changes.difference.present.map(\.key))
    damaged = damaged.filter { !changed.contains($0) } + changes.damaged
    guard known.count == found.manifest?.count, hasRules(found.manifest, known) else { return nil }
    (toldVersion, areRulesMissing, isVerificationDue) = (found.version, false, true)
    judge(found, anchored)
    return ExternalChanges(changes.news)
  }

  private func compare(
    _ database: Database, _ manifest: Manifest, _ known: KnownRows
  ) throws -> LeafChanges? {
    guard let difference = try known.difference(to: manifest, database, keys) else { return nil }
    var changes = LeafChanges(difference)
    for key in difference.gone {
      // One that this process has moved since stands in another leaf.
      let row = try items(database).fetchColumns(key)
      if let row, !known.contains(row) { return nil }
      try changes.add(key, row, items(database))
    }
    for row in difference.present {
      guard try items(database).fetchColumns(row.key) == row else { return nil }
      try changes.add(row.key, row, items(database))
    }
    return changes
  }

  /// Whether the rules of folders are there, or there are to be none.
  private func hasRules(_ manifest: Manifest?, _ known: KnownRows) -> Bool {
    guard manifest?.hasRules == true else { return true }
    return known.row(with: keys.tag(of: .rules)).map { !damaged.contains($0.key) } ?? false
  }
}

/// The rows of leaves that have changed, as items.
private struct LeafChanges {
  let difference: KnownRows.Difference
  var news: [ItemNews] = []
  var damaged: [ItemKey] = []

  init(_ difference: KnownRows.Difference) { self.difference = difference }
  mutating func add(_ key: ItemKey, _ row: ItemRow?, _ items: ItemTable) throws {
    var item: Item?
    do {
      if row != nil { item = try items.fetch(key)?.record.item }
    } catch StoreError.damaged {
      damaged.append(key)
    }
    news.append(ItemNews(key.id, item, origin: .external))
  }
}

// MARK: - Reading beside other calls

extension Session {
  /// Whether its items are so many that they are read beside other calls.
  var isSlowToRead: Bool { isUnread && (manifest?.count ?? 0) >= many }

  /// Takes over all rows as another connection has read them, and what has changed since. nil: they are not all that the
  /// manifest answered for.
  func take(_ snapshot: SnapshotReader) throws(StoreError) -> ExternalChanges {
    guard let rows = snapshot.rows else { return .everything(try reload()) }
    (known, damaged, isUnread) = (rows, snapshot.damaged, false)
    do throws(StoreError) {
      guard let changes = try changesOfLeaves() else { return .everything(try load()) }
      isVerificationDue = connection.commitMark().map { $0 != snapshot.mark } ?? true
      return changes
    } catch {
      (known, isUnread) = (nil, true)
      throw error
    }
  }

  /// Takes over what a comparison of all rows has found; where something is wrong, all are read, and the next call of
  /// `changes` reports them.
  func takeVerification(_ snapshot: SnapshotReader) throws(StoreError) {
    let isSame = connection.commitMark().map { $0 == snapshot.mark } ?? false
    let isDamaged = isSame && told(at: snapshot) && Set(snapshot.damaged) != Set(damaged)
    guard !snapshot.isWhole || isDamaged else {
      if isSame { isVerificationDue = false }
      return
    }
    try reloadAsNews()
  }

  private func told(at snapshot: SnapshotReader) -> Bool { manifest?.generation == snapshot.generation }
}
