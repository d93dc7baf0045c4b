import Model

/// Where in `.keyhole/history` something stands: below it, an item has the path that it has in the tree, or had.
enum HistoryPlace: Hashable, Sendable {
  case top
  case keychain
  case itemClass(ItemClass)
  case folder(FolderPlace)
  case item(ItemPlace)
  /// The value of a version.
  case version(ItemPlace, UInt64)

  var parent: Place {
    switch self {
    case .top: .control
    case .keychain: .history(.top)
    case .itemClass: .history(.keychain)
    case .folder(let folder): .history(.itemClass(folder.itemClass))
    case .item(let item):
      .history(item.folderPlace.map(HistoryPlace.folder) ?? .itemClass(item.itemClass))
    case .version(let item, _): .history(.item(item))
    }
  }

  var isDirectory: Bool {
    if case .version = self { false } else { true }
  }

  var name: String {
    switch self {
    case .top: "history"
    case .keychain: Place.keychain.name
    case .itemClass(let itemClass): itemClass.rawValue
    case .folder(let folder): folder.name.string
    case .item(let item): item.name.string
    case .version(_, let number): String(number)
    }
  }
}
