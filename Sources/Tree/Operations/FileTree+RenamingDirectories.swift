import Model
import Store
import Synchronization
import Views

extension FileTree {
  func moveDirectory(_ source: Place, to target: Place, isTaken: Bool) throws(StoreError) {
    if isTaken { try makeRoom(at: target) }
    switch (source, target) {
    case (.suite(let name), .suite(let newName)): try renameSuite(name, to: newName)
    case (.folder(let folder), .folder(let newFolder)): try moveFolder(folder, to: newFolder)
    case (.item(let item), .item(let newItem)): try moveItem(item, to: newItem)
    default: throw .notPermitted(reason: "this can't be moved there")
    }
    overlay.withLock { $0.move(source, to: target) }
  }

  private func renameSuite(_ name: ExactString, to newName: ExactString) throws(StoreError) {
    let keys = (try settings.suite(name).fetch()?.entries.keys).map { Array($0) } ?? []
    try withViewsFollowing(keys.map { Views.SettingRename(name, $0, to: newName, $0) }) {
      () throws(StoreError) in
      try settings.renameSuite(name, to: newName)
    }
  }

  /// Renames settings; views that refer to them follow.
  func withViewsFollowing(
    _ renames: [Views.SettingRename], _ rename: () throws(StoreError) -> Void
  ) throws(StoreError) {
    guard let views else {
      // A keychain that this process could not open may have some.
      if options.isWithoutVault { pendingRenames?.add(renames, TreePaths()) }
      return try rename()
    }
    try views.following(renames, rename)
  }

  /// An empty directory may be replaced by another.
  private func makeRoom(at target: Place) throws(StoreError) {
    guard try places(in: target).isEmpty else { throw .notEmpty }
    switch target {
    case .suite(let name): try settings.removeSuite(name)
    case .folder(let folder): _ = overlay.withLock { $0.stagedFolders.remove(folder) }
    case .item(let item): overlay.withLock { $0.stagedItems[item] = nil }
    default: break
    }
  }

  private func moveFolder(_ folder: FolderPlace, to newFolder: FolderPlace) throws(StoreError) {
    guard let newName = newFolder.name.plain else { throw .invalidName(reason: "not a new name") }
    let items = try storedItems(in: .folder(folder)).map(\.item.id)
    try requireKeychain().update(items) { item in item.identity = item.identity.inFolder(newName) }
    overlay.withLock { overlay in
      if overlay.stagedFolders.remove(folder) != nil { overlay.stagedFolders.insert(newFolder) }
      for (place, staged) in overlay.stagedItems where place.folderPlace == folder {
        overlay.stagedItems[place]?.item.identity = staged.item.identity.inFolder(newName)
      }
    }
  }

  private func moveItem(_ place: ItemPlace, to newPlace: ItemPlace) throws(StoreError) {
    guard let identity = newPlace.identity else { throw .invalidName(reason: "not a new item's name") }
    if stagedItem(place) == nil, let item = try storedItem(place) {
      try requireKeychain().update([item.id]) { $0.move(to: identity) }
    }
    overlay.withLock { overlay in
      overlay.stagedItems[place]?.item.move(to: identity)
      // The folder it leaves stays, as one that is emptied by rm does.
      if let folder = place.folderPlace { overlay.stagedFolders.insert(folder) }
    }
  }
}

extension ItemIdentity {
  /// The same item under another service or server.
  fileprivate func inFolder(_ name: ExactString) -> ItemIdentity {
    switch self {
    case .generic(_, let account): return .generic(service: name, account: account)
    case .internet(var identity):
      identity.server = name
      return .internet(identity)
    case .other: return .other(label: name)
    }
  }
}

extension Item {
  /// In the class `other` the name is the label: one beside it, which items of the same label have, ends with the former name.
  fileprivate mutating func move(to identity: ItemIdentity) {
    if self.identity != identity, identity.itemClass == .other { label = nil }
    self.identity = identity
  }
}
