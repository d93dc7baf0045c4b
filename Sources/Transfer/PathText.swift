import Model
import Tree

/// Names as they stand in paths of the tree.
enum PathText {
  static func encode(_ name: ExactString) -> String { PathName(name).string }

  static func decode(_ name: String) throws(StoreError) -> ExactString {
    guard let plain = try PathName(creating: name.utf8).plain else {
      throw .invalidName(reason: "it was cut")
    }
    return plain
  }

  /// The identity that folders below a class name.
  static func identity(_ itemClass: ItemClass, _ folders: [String]) -> ItemIdentity? {
    let level = ItemFolderName.leafLevel(of: itemClass)
    guard let last = folders.last, let leaf = try? PathName(creating: last.utf8, level: level) else {
      return nil
    }
    return ItemIdentity(itemClass, parent: folders.count == 2 ? try? decode(folders[0]) : nil, leaf: leaf)
  }
}
