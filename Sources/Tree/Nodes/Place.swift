import Model

/// Where in the tree something stands (SPECIFICATION.md, section 1).
enum Place: Hashable, Sendable {
  case root
  case control
  case status
  case events
  case history(HistoryPlace)
  case defaults
  case suite(ExactString)
  case key(KeyPlace)
  case keychain
  case itemClass(ItemClass)
  case folder(FolderPlace)
  case item(ItemPlace)
  case value(ItemPlace)
  /// The item's `otpauth:` URI.
  case otpauth(ItemPlace)
  /// The item's one-time code, which is computed from the URI. Its directory does not list it.
  case code(ItemPlace)
  /// Below `views` or `templates`.
  case view(ViewPlace)
  /// Boxed: there are few, and every node has room for the largest place.
  indirect case scratch(ScratchPlace)
}

/// A key of a suite, by its plain name.
struct KeyPlace: Hashable, Sendable {
  var suite: ExactString
  var key: ExactString
}

/// The directory of a service or server.
struct FolderPlace: Hashable, Sendable {
  var itemClass: ItemClass
  var name: PathName
}

/// The directory of an item. In `other` it stands in the class's directory, so it has no folder.
struct ItemPlace: Hashable, Sendable {
  var folder: PathName?
  var name: PathName
  // The last one, so that a place has its case behind it in the same word.
  var itemClass: ItemClass

  init(itemClass: ItemClass, folder: PathName?, name: PathName) {
    (self.itemClass, self.folder, self.name) = (itemClass, folder, name)
  }
}

/// A file that lives in memory only, in the directory of a suite or an item, or beside views.
struct ScratchPlace: Hashable, Sendable {
  enum Directory: Hashable, Sendable {
    case suite(ExactString)
    case item(ItemPlace)
    case views(ViewFolder)
  }

  var directory: Directory
  /// As it stands in the path: scratch names are not encoded.
  var name: ExactString
}

extension Place {
  /// nil: the root.
  var parent: Place? {
    switch self {
    case .root: nil
    case .control, .defaults, .keychain: .root
    case .status, .events: .control
    case .history(let place): place.parent
    case .suite: .defaults
    case .key(let place): .suite(place.suite)
    case .itemClass: .keychain
    case .folder(let place): .itemClass(place.itemClass)
    case .item(let place): place.parent
    case .value(let place), .otpauth(let place), .code(let place): .item(place)
    case .view(let place): place.parent
    case .scratch(let place): place.parent
    }
  }

  /// How many directories it is below.
  var depth: Int { sequence(first: self, next: \.parent).reduce(-1) { count, _ in count + 1 } }

  var isDirectory: Bool {
    switch self {
    case .root, .control, .defaults, .suite, .keychain, .itemClass, .folder, .item: true
    case .status, .events, .key, .value, .otpauth, .code, .scratch: false
    case .history(let place): place.isDirectory
    case .view(let place): place.isDirectory
    }
  }

  /// The last component, as it stands in the path.
  var name: String {
    switch self {
    case .root: ""
    case .control: ".keyhole"
    case .status: "status"
    case .events: "events"
    case .history(let place): place.name
    case .defaults: "defaults"
    case .suite(let name): PathName(name).string
    case .key(let place): PathName(place.key).string
    case .keychain: "keychain"
    case .itemClass(let itemClass): itemClass.rawValue
    case .folder(let place): place.name.string
    case .item(let place): place.name.string
    case .value: Self.valueName
    case .otpauth: ItemSecrets.otpauthName
    case .code: ItemSecrets.codeName
    case .view(let place): place.name
    case .scratch(let place): place.name.string
    }
  }

  /// Adds the name within the directory, which no other kind of file there has.
  func combineName(into hasher: inout Hasher) {
    switch self {
    case .suite(let name): hasher.combine(name)
    case .key(let place): hasher.combine(place.key)
    case .scratch(let place):
      hasher.combine(true)
      hasher.combine(place.name)
    case .folder(let place): hasher.combine(place.name)
    case .item(let place): hasher.combine(place.name)
    case .history(let place): hasher.combine(place.name)
    case .view(let place): hasher.combine(place.name)
    case .root, .control, .status, .events, .defaults, .keychain, .itemClass, .value, .otpauth,
      .code:
      hasher.combine(self.name)
    }
  }

  /// The path from the top of the tree, without a leading slash.
  var path: String {
    guard let parent else { return "" }
    let above = parent.path
    return above.isEmpty ? name : above + "/" + name
  }

  /// Whether secrets live here: then contents are kept in locked memory and out of the page cache.
  var isSecret: Bool {
    switch self {
    case .value, .otpauth, .code, .history(.version), .history(.viewText), .view(.file): true
    case .scratch(let place): place.directory.isSecret
    default: false
    }
  }
}

extension ItemPlace {
  var parent: Place {
    guard let folder else { return .itemClass(itemClass) }
    return .folder(FolderPlace(itemClass: itemClass, name: folder))
  }

  var folderPlace: FolderPlace? {
    folder.map { FolderPlace(itemClass: itemClass, name: $0) }
  }
}

extension ScratchPlace {
  var parent: Place {
    switch directory {
    case .suite(let name): .suite(name)
    case .item(let place): .item(place)
    case .views(let folder): .view(.folder(folder))
    }
  }
}

extension ScratchPlace.Directory {
  var isSecret: Bool {
    if case .suite = self { return false }
    return true
  }
}

extension Place {
  /// The same place after `old` was renamed to `new`; nil: the rename does not concern it.
  func moved(from old: Place, to new: Place) -> Place? {
    if self == old { return new }
    guard let parent, let movedParent = parent.moved(from: old, to: new) else { return nil }
    return below(movedParent)
  }

  private func below(_ parent: Place) -> Place? {
    switch (self, parent) {
    case (.key(let place), .suite(let suite)): .key(KeyPlace(suite: suite, key: place.key))
    case (.item(let place), .folder(let folder)):
      .item(ItemPlace(itemClass: folder.itemClass, folder: folder.name, name: place.name))
    case (.value, .item(let item)): .value(item)
    case (.otpauth, .item(let item)): .otpauth(item)
    case (.code, .item(let item)): .code(item)
    case (.scratch(let place), .suite(let suite)):
      .scratch(ScratchPlace(directory: .suite(suite), name: place.name))
    case (.scratch(let place), .item(let item)):
      .scratch(ScratchPlace(directory: .item(item), name: place.name))
    default: nil
    }
  }
}

extension Place {
  static let valueName = "value"

  /// An item's file with one of its secrets. `nil`: another name.
  init?(secretOf item: ItemPlace, named name: some Collection<UInt8>) {
    if name.elementsEqual(Self.valueName.utf8) {
      self = .value(item)
    } else if name.elementsEqual(ItemSecrets.otpauthName.utf8) {
      self = .otpauth(item)
    } else {
      return nil
    }
  }

  /// Of a file with a secret: the item, and which of its secrets.
  var secret: (item: ItemPlace, which: ItemSecrets)? {
    switch self {
    case .value(let item): (item, .value)
    case .otpauth(let item): (item, .otpauth)
    default: nil
    }
  }
}
