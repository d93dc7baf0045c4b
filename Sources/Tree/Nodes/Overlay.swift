import Model
import Synchronization

/// State of this mount only, which ends with it: staged items, folders that are kept though empty,
/// keys that are created but not yet committed, scratch, and values that an editor has set aside.
struct Overlay: Sendable {
  /// Item directories without a stored secret, with the attributes that wait for it.
  var stagedItems: [ItemPlace: StagedItem] = [:]
  /// Service and server directories that were made by mkdir, or emptied through the mount.
  var stagedFolders: Set<FolderPlace> = []
  /// Keys and values that an open created and no commit has stored yet.
  var pending: [Place: PendingFile] = [:]
  /// By directory, because listings ask so.
  var scratch: [ScratchPlace.Directory: [ExactString: ScratchFile]] = [:]
  /// The type of the first content of an empty key: of one that was data and was emptied, and of one
  /// that was created empty and has had `user.keyhole.type` set since (as tar does).
  var emptyTypes: [KeyPlace: SettingType] = [:]
  /// Stored values that stand aside under a scratch name: the mount shows them gone.
  var setAside: [Place: ScratchPlace] = [:]
}

/// An item's directory before its secret is there.
struct StagedItem: Sendable {
  /// The item to be; its id is that of the deleted item if it was one.
  var item: Item
  /// The stored item of the same identity that was there when it was staged; nil: there was none.
  var twin: ItemID?
  /// Attributes that were set and that the item can't have, by full name; dropped at the commit.
  var extra: [String: [UInt8]] = [:]
  /// Its `otpauth:` URI, which waits for the secret; nil: none was written.
  var otpauth: StagedOtpauth?
}

/// An `otpauth:` URI that was written before the item had its secret.
struct StagedOtpauth: Sendable {
  var content: Content
  var modified: Timestamp
}

/// A file that was created and not yet committed.
struct PendingFile: Sendable {
  var created: Timestamp
  /// The type that `user.keyhole.type` was set to before there was any content.
  var declaredType: SettingType?
}

extension Overlay {
  subscript(place: ScratchPlace) -> ScratchFile? {
    get { scratch[place.directory]?[place.name] }
    set {
      scratch[place.directory, default: [:]][place.name] = newValue
      if scratch[place.directory]?.isEmpty == true { scratch[place.directory] = nil }
    }
  }

  /// Forgets a file that was created and not committed. Returns whether there was one.
  mutating func dropPending(_ place: Place) -> Bool {
    guard pending.removeValue(forKey: place) != nil else { return false }
    // The value that it was to replace is shown again if the scratch file that stood for it is gone too.
    if let scratch = setAside[place], self[scratch] == nil { setAside[place] = nil }
    return true
  }

  /// The staged items of a folder; of a class where there are no folders.
  func stagedItems(in parent: Place) -> [ItemPlace] {
    stagedItems.keys.filter { $0.parent == parent }
  }

  func stagedFolders(of itemClass: ItemClass) -> Set<FolderPlace> {
    let ofItems = stagedItems.keys.compactMap(\.folderPlace).filter { $0.itemClass == itemClass }
    return stagedFolders.filter { $0.itemClass == itemClass }.union(ofItems)
  }

  /// Everything moves along when a directory is renamed.
  mutating func move(_ old: Place, to new: Place) {
    stagedItems = stagedItems.movingKeys { place in
      guard case .item(let moved)? = Place.item(place).moved(from: old, to: new) else { return place }
      return moved
    }
    stagedFolders = Set(
      stagedFolders.map { place in
        guard case .folder(let moved)? = Place.folder(place).moved(from: old, to: new) else { return place }
        return moved
      })
    emptyTypes = emptyTypes.movingKeys { place in
      guard case .key(let moved)? = Place.key(place).moved(from: old, to: new) else { return place }
      return moved
    }
    pending = pending.movingKeys { $0.moved(from: old, to: new) ?? $0 }
    setAside = setAside.movingKeys { $0.moved(from: old, to: new) ?? $0 }.mapValues { place in
      guard case .scratch(let moved)? = Place.scratch(place).moved(from: old, to: new) else { return place }
      return moved
    }
    scratch = scratch.movingKeys { $0.moved(from: old, to: new) }
  }
}

extension ScratchPlace.Directory {
  fileprivate func moved(from old: Place, to new: Place) -> Self {
    let directory: Place =
      switch self {
      case .suite(let name): .suite(name)
      case .item(let place): .item(place)
      case .views(let folder): .view(.folder(folder))
      }
    switch directory.moved(from: old, to: new) {
    case .suite(let name)?: return .suite(name)
    case .item(let place)?: return .item(place)
    default: return self
    }
  }
}

extension Dictionary {
  fileprivate func movingKeys(_ transform: (Key) -> Key) -> [Key: Value] {
    Dictionary(map { (transform($0), $1) }, uniquingKeysWith: { _, moved in moved })
  }
}
