package import Model
import Tree

/// Where the things of an import go that have no place of their own: `defaults/SUITE` or `keychain/generic/SERVICE`.
package struct ImportTarget: Sendable {
  package private(set) var suite: ExactString?
  package private(set) var service: ExactString?

  /// nil: it is neither, or the name can't be one.
  package init?(_ path: String) {
    let parts = TreePath(path).components
    guard let name = parts.last.flatMap({ try? PathName(creating: $0.utf8).plain }) else { return nil }
    switch (parts.first, parts.count) {
    case ("defaults", 2): suite = name
    case ("keychain", 3) where parts[1] == "generic": service = name
    default: return nil
    }
  }
}
