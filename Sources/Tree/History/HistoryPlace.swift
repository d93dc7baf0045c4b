import Model

/// Where in `.keyhole/history` something stands: below it, an item has the path that it has in the tree, or had.
enum HistoryPlace: Hashable, Sendable {
  case top
  case defaults
  case suite(ExactString)
  case key(KeyPlace)
  /// A value that a key had.
  case setting(KeyPlace, UInt64)
  case keychain
  case itemClass(ItemClass)
  case folder(FolderPlace)
  case item(ItemPlace)
  /// The value of a version.
  case version(ItemPlace, UInt64)
  case views
  case view(ExactString)
  /// The text of a view that it had.
  case viewText(ExactString, UInt64)

  var parent: Place {
    switch self {
    case .top: .control
    case .keychain, .defaults, .views: .history(.top)
    case .view: .history(.views)
    case .viewText(let view, _): .history(.view(view))
    case .suite: .history(.defaults)
    case .key(let key): .history(.suite(key.suite))
    case .setting(let key, _): .history(.key(key))
    case .itemClass: .history(.keychain)
    case .folder(let folder): .history(.itemClass(folder.itemClass))
    case .item(let item):
      .history(item.folderPlace.map(HistoryPlace.folder) ?? .itemClass(item.itemClass))
    case .version(let item, _): .history(.item(item))
    }
  }

  var isDirectory: Bool {
    switch self {
    case .version, .setting, .viewText: false
    default: true
    }
  }

  var name: String {
    switch self {
    case .top: "history"
    case .defaults: Place.defaults.name
    case .suite(let name): PathName(name).string
    case .key(let key): PathName(key.key).string
    case .setting(_, let number): String(number)
    case .keychain: Place.keychain.name
    case .itemClass(let itemClass): itemClass.rawValue
    case .folder(let folder): folder.name.string
    case .item(let item): item.name.string
    case .version(_, let number), .viewText(_, let number): String(number)
    case .views: ViewFolder.views.rawValue
    case .view(let name): name.string
    }
  }
}
