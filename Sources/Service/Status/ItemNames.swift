import Control
package import Model
import Tree

/// The present paths of items by their numbers; deleted ones have their numbers only.
package final class ItemNames {
  private let mounts: MountNames
  private lazy var session = try? TreeSession(for: TreePath("keychain"))
  private var known: [ItemID: String] = [:]

  package init(_ places: StoragePaths) {
    mounts = MountNames(runtimeFolder: places.runtime)
  }

  package func path(of item: ItemID) -> String {
    if let path = known[item] { return path }
    let path = mounts.path(of: item) ?? ownPath(of: item) ?? item.rawValue
    known[item] = path
    return path
  }

  private func ownPath(of item: ItemID) -> String? {
    (try? session?.tree.path(of: item)) ?? nil
  }
}
