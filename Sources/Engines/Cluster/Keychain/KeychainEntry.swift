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

  /// The item's identity; nil: it is a part of a change.
  var kept: ItemIdentity? {
    switch self {
    case .item(let entry): entry.record.item.identity
    case .changes: nil
    }
  }

  /// The items by their ids and identities, and the parts of changes that are not brought into them.
  struct View: CollectionView {
    typealias Content = KeychainEntry
    private(set) var items: [ItemKey: ItemEntry] = [:]
    private(set) var ids: [ItemIdentity: ItemKey] = [:]
    private(set) var changes: [ItemKey: [ItemEntryChange]] = [:]

    init() {}

    mutating func put(_ id: ItemKey, _ content: KeychainEntry, replacing old: ItemIdentity??) {
      if let old { remove(id, old) }
      switch content {
      case .item(let entry):
        items[id] = entry
        ids[entry.record.item.identity] = id
      case .changes(let changes): self.changes[id] = changes
      }
    }

    mutating func remove(_ id: ItemKey, _ old: ItemIdentity?) {
      guard let old else { return changes[id] = nil }
      items[id] = nil
      if ids[old] == id { ids[old] = nil }
    }
  }
}

extension VerifiedCopy<KeychainEntry> {
  /// The items with the change that the journal holds.
  var items: VerifiedItems {
    var items = VerifiedItems(entries: view.items, ids: view.ids, version: version)
    for part in head.journal {
      for change in view.changes[part] ?? [] { items.apply(change) }
    }
    return items
  }
}

/// The items as they are in one version of the keychain.
struct VerifiedItems {
  private(set) var entries: [ItemKey: ItemEntry]
  private(set) var ids: [ItemIdentity: ItemKey]
  let version: UInt64

  init(entries: [ItemKey: ItemEntry], ids: [ItemIdentity: ItemKey], version: UInt64) {
    (self.entries, self.ids, self.version) = (entries, ids, version)
  }

  mutating func apply(_ change: ItemEntryChange) {
    if let old = entries[change.id]?.record.item.identity, ids[old] == change.id { ids[old] = nil }
    switch change {
    case .set(let id, let entry):
      entries[id] = entry
      ids[entry.record.item.identity] = id
    case .remove(let id): entries[id] = nil
    }
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
