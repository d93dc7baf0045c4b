import Model
import Store
import Synchronization

// From the tree's names to the keychain's items.
extension FileTree {
  /// nil: there is none, or the item was stored meanwhile: by another process, or by a view of which it is a part.
  func stagedItem(_ place: ItemPlace) -> StagedItem? {
    guard let staged = overlay.withLock({ $0.stagedItems[place] }) else { return nil }
    guard let stored = try? storedItem(place), stored.id != staged.twin else { return staged }
    overlay.withLock { $0.stagedItems[place] = nil }
    return nil
  }

  /// The item of the keychain that is shown at `place`; nil: there is none.
  func storedItem(_ place: ItemPlace) throws(StoreError) -> Item? {
    guard let identity = place.identity else {
      // A cut or disambiguated name: only the listing knows whose it is.
      return try storedItems(in: place.parent).first { $0.place == place }?.item
    }
    return try requireKeychain().item(with: identity)
  }

  /// The item at a place, in the keychain or staged.
  func anyItem(_ place: ItemPlace) throws(StoreError) -> Item {
    if let staged = stagedItem(place) { return staged.item }
    guard let item = try storedItem(place) else { throw .notFound }
    return item
  }

  /// The items of the keychain that are shown in the directory of a class or a folder.
  func storedItems(in directory: Place) throws(StoreError) -> [(place: ItemPlace, item: Item)] {
    let keychain = try requireKeychain()
    switch directory {
    case .itemClass(let itemClass):
      let items = try keychain.read { index in
        index.folders(of: itemClass).flatMap { index.items(in: $0, of: itemClass) }
      }
      return places(of: items)
    case .folder(let folder):
      guard let plain = try plainFolder(folder) else { return [] }
      return places(of: try keychain.read { $0.items(in: plain, of: folder.itemClass) })
    default:
      return []
    }
  }

  /// The service or server that is shown as `place`; nil: the keychain has none.
  func plainFolder(_ place: FolderPlace) throws(StoreError) -> ExactString? {
    if let plain = place.name.plain { return plain }
    let folders = try requireKeychain().read { $0.folders(of: place.itemClass) }
    return folders.first { PathName($0) == place.name }
  }

  /// Where `items` are shown: of those with one identity the oldest has the plain name, the others have
  /// the digest of their id added.
  private func places(of items: [Item]) -> [(place: ItemPlace, item: Item)] {
    let byIdentity = Dictionary(grouping: items, by: \.identity)
    return byIdentity.values.flatMap { sameIdentity in
      let oldestFirst = sameIdentity.sorted { ($0.created, $0.id.rawValue) < ($1.created, $1.id.rawValue) }
      return oldestFirst.enumerated().map { index, item in
        (ItemPlace(item.identity, duplicate: index == 0 ? nil : item.id), item)
      }
    }
  }
}

extension ItemPlace {
  init(_ identity: ItemIdentity, duplicate: ItemID? = nil) {
    var name = ItemFolderName(identity)
    if let duplicate { name = name.disambiguated(by: duplicate) }
    self.init(itemClass: name.itemClass, folder: name.parent, name: name.leaf)
  }

  init(folder: FolderPlace, name: PathName) {
    self.init(itemClass: folder.itemClass, folder: folder.name, name: name)
  }

  /// The identity in the names; nil: they are cut or disambiguated, or the leaf is none of its class.
  var identity: ItemIdentity? {
    guard let folder else { return ItemIdentity(itemClass, parent: nil, leaf: name) }
    return folder.plain.flatMap { ItemIdentity(itemClass, parent: $0, leaf: name) }
  }
}
