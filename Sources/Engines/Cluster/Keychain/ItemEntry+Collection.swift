import ClusterRecords
import Model
import VaultRecords

extension ItemEntry: CollectionContent {
  var kept: ItemEntry { self }

  /// The items by their identities.
  struct View: CollectionView {
    typealias Content = ItemEntry
    private(set) var ids: [ItemIdentity: ItemKey] = [:]

    init() {}

    mutating func put(_ id: ItemKey, _ content: ItemEntry, replacing old: ItemEntry?) {
      if let old { remove(id, old) }
      ids[content.record.item.identity] = id
    }

    mutating func remove(_ id: ItemKey, _ old: ItemEntry) {
      let identity = old.record.item.identity
      if ids[identity] == id { ids[identity] = nil }
    }
  }
}
