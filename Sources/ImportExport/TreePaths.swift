public import Formats
public import Model
import Tree

/// Names and identities as they stand in paths of the tree.
public struct TreePaths: TreePathCoding {
  /// There is nothing to configure.
  public init() {}

  /// The name percent-encoded, and cut where it is longer than 255 bytes.
  public func encode(_ name: ExactString) -> String { PathName(name).string }

  /// - Throws: `invalidName` for a wrong escape, and for a name that was cut.
  public func decode(_ name: String) throws(StoreError) -> ExactString {
    guard let plain = try PathName(creating: name.utf8).plain else {
      throw .invalidName(reason: "it was cut")
    }
    return plain
  }

  /// The primary key that the folders below a class stand for; nil: they stand for none.
  public func identity(_ itemClass: ItemClass, _ folders: [String]) -> ItemIdentity? {
    let level = ItemFolderName.leafLevel(of: itemClass)
    guard let last = folders.last, let leaf = try? PathName(creating: last.utf8, level: level) else {
      return nil
    }
    return ItemIdentity(itemClass, parent: folders.count == 2 ? try? decode(folders[0]) : nil, leaf: leaf)
  }

  /// `keychain/generic/SERVICE/ACCOUNT`
  public static func path(_ identity: ItemIdentity) -> String {
    let name = ItemFolderName(identity)
    let parts = [name.itemClass.rawValue, name.parent?.string, name.leaf.string]
    return "keychain/" + parts.compactMap { $0 }.joined(separator: "/")
  }

  /// `defaults/SUITE/KEY`
  public static func path(_ entry: SettingEntry) -> String {
    "defaults/\(PathName(entry.suite).string)/\(PathName(entry.key).string)"
  }
}
