import ClusterRecords
import Model
import VaultRecords

/// An entry of a keychain: an item, or a part of a change of many items, which its head lists in its journal.
enum KeychainEntry: CollectionContent {
  case item(ItemEntry)
  case changes([ItemEntryChange])

  init(_ bytes: Span<UInt8>, _ id: ItemKey) throws(StoreError) {
    if let changes = try ItemEntryChange.list(bytes) {
      self = .changes(changes)
    } else {
      self = .item(try ItemEntry(bytes, id))
    }
  }

  func encoded() throws(StoreError) -> [UInt8] {
    switch self {
    case .item(let entry): try entry.encoded()
    case .changes(let changes): try ItemEntryChange.encode(changes)
    }
  }

  /// The item's identity, also of a removed one; nil: it is a part of a change.
  var kept: ItemIdentity? {
    switch self {
    case .item(let entry): entry.record.item.identity
    case .changes: nil
    }
  }

  /// The items, and the parts of changes that are not brought into them.
  struct View: CollectionView {
    typealias Content = KeychainEntry
    private(set) var items = ItemTable()
    private(set) var changes: [ItemKey: [ItemEntryChange]] = [:]

    init() {}

    mutating func put(_ id: ItemKey, _ content: KeychainEntry, replacing old: ItemIdentity??) {
      if let old { remove(id, old) }
      switch content {
      case .item(let entry): items.set(id, entry)
      case .changes(let changes): self.changes[id] = changes
      }
    }

    mutating func remove(_ id: ItemKey, _ old: ItemIdentity?) {
      if old == nil { changes[id] = nil } else { items.set(id, nil) }
    }
  }
}

/// Items by their ids and identities, and those that were removed and are kept for a while.
struct ItemTable: Sendable {
  private(set) var entries: [ItemKey: ItemEntry] = [:]
  private(set) var ids: [ItemIdentity: ItemKey] = [:]
  private(set) var removed: [ItemKey: ItemEntry] = [:]
  private var removedIDs: [ItemIdentity: Set<ItemKey>] = [:]

  init() {}

  subscript(id: ItemKey) -> ItemEntry? { entries[id] ?? removed[id] }

  /// The removed items that had an identity when they were, by when that was.
  func removed(_ identity: ItemIdentity) -> [(id: ItemKey, entry: ItemEntry)] {
    (removedIDs[identity] ?? []).compactMap { id in removed[id].map { (id, $0) } }
      .sorted { ($0.entry.versions.last?.number ?? 0) < ($1.entry.versions.last?.number ?? 0) }
  }

  /// `entry`: nil where there is none any more.
  mutating func set(_ id: ItemKey, _ entry: ItemEntry?) {
    if let old = entries.removeValue(forKey: id)?.record.item.identity, ids[old] == id { ids[old] = nil }
    if let old = removed.removeValue(forKey: id)?.record.item.identity {
      removedIDs[old]?.remove(id)
      if removedIDs[old]?.isEmpty == true { removedIDs[old] = nil }
    }
    guard let entry else { return }
    let identity = entry.record.item.identity
    if entry.isRemoved {
      removed[id] = entry
      removedIDs[identity, default: []].insert(id)
    } else {
      entries[id] = entry
      ids[identity] = id
    }
  }
}

extension VerifiedCopy<KeychainEntry> {
  /// The items as their entries have them.
  var storedItems: VerifiedItems {
    VerifiedItems(table: view.items, version: version, changed: head.valueTime)
  }

  /// The items with the change that the journal holds. - Throws: `tooLarge`.
  var items: VerifiedItems {
    get throws(StoreError) {
      var items = storedItems
      for part in head.journal {
        for change in view.changes[part] ?? [] {
          items.table.set(change.id, try change.entry(after: items.table[change.id]))
        }
      }
      return items
    }
  }
}

/// The items as they are in one version of the keychain.
struct VerifiedItems {
  fileprivate(set) var table: ItemTable
  let version: UInt64
  /// When a value was changed last, by the latest clock of those that have changed one.
  let changed: Timestamp

  var entries: [ItemKey: ItemEntry] { table.entries }
  var ids: [ItemIdentity: ItemKey] { table.ids }

  /// When the present state of an item is replaced.
  /// `others`: as `PruningClock.latestOther`.
  func end(of entry: ItemEntry, others: Timestamp?) -> Timestamp {
    .end(
      stored: entry.record.item.modified, after: entry.versions.last?.replaced, changed, others: others)
  }

  /// - Throws: `exists` where two items would have one identity.
  func checkIdentities(_ changed: [ItemKey: ItemEntry]) throws(StoreError) {
    var taken: Set<ItemIdentity> = []
    for (_, entry) in changed {
      let identity = entry.record.item.identity
      guard taken.insert(identity).inserted else { throw .exists }
      if let other = ids[identity], changed[other] == nil { throw .exists }
    }
  }
}
