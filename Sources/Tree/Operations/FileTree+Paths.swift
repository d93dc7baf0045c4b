public import Model
import Store
import Synchronization

// Paths of the whole tree, for callers that have no kernel to look up one name after the other.
extension FileTree {
  /// The file or directory at a path from the top.
  ///
  /// An item is found by its names; its folder is not looked up.
  /// - Throws: as `child(of:named:)` for each component.
  public func node(at path: [String]) throws(StoreError) -> Node {
    var (node, rest) = (root, path[...])
    if let (item, below) = try itemPlace(leading: path), item.identity != nil {
      guard try exists(.item(item)) else { throw .notFound }
      node = self.node(at: .item(item))
      rest = below
    }
    for name in rest { node = try child(of: node, named: name.utf8) }
    return node
  }

  /// The directory at a path from the top, made where it is missing with those that lead to it.
  ///
  /// - Throws: as `child(of:named:)` and `makeDirectory`.
  public func makeDirectories(at path: [String]) throws(StoreError) -> Node {
    do throws(StoreError) { return try node(at: path) } catch {
      guard error == .notFound else { throw error }
    }
    if keychain != nil, path.count == 4, path[0] == Place.keychain.name,
      let itemClass = ItemClass(rawValue: path[1])
    {
      return try stageItem(named: path[3], in: path[2], of: itemClass)
    }
    var node = root
    for name in path {
      do throws(StoreError) {
        node = try child(of: node, named: name.utf8)
      } catch {
        guard error == .notFound else { throw error }
        node = try makeDirectory(name.utf8, in: node)
      }
    }
    return node
  }

  /// The item that a path leads to or through, and the names below it; nil: none.
  func itemPlace(
    leading path: [String]
  ) throws(StoreError) -> (ItemPlace, below: ArraySlice<String>)? {
    keychain == nil ? nil : try Self.itemPlace(in: path)
  }

  static func itemPlace(
    in path: [String]
  ) throws(StoreError) -> (ItemPlace, below: ArraySlice<String>)? {
    guard path.first == Place.keychain.name, path.count > 2,
      let itemClass = ItemClass(rawValue: path[1])
    else { return nil }
    if itemClass == .other {
      let name = try PathName(lookingUp: path[2].utf8)
      return (ItemPlace(itemClass: itemClass, folder: nil, name: name), path.dropFirst(3))
    }
    guard path.count > 3 else { return nil }
    let folder = FolderPlace(itemClass: itemClass, name: try PathName(lookingUp: path[2].utf8))
    let level = ItemFolderName.leafLevel(of: itemClass)
    let place = ItemPlace(folder: folder, name: try PathName(lookingUp: path[3].utf8, level: level))
    return (place, path.dropFirst(4))
  }

  /// An item that is not there, with its folder, which may be.
  private func stageItem(
    named name: String, in folder: String, of itemClass: ItemClass
  ) throws(StoreError) -> Node {
    let folder = try newDirectory(folder.utf8, in: .itemClass(itemClass))
    guard case .item(let place) = try newDirectory(name.utf8, in: folder) else { throw .notFound }
    try stage(place)
    return node(at: .item(place))
  }
}
