import Model
import Store
import Tree

extension TreeSession {
  /// The content that a removal takes with it.
  package enum Removal: Sendable {
    /// None: a folder is not removed.
    case fileOnly
    /// All that is in a folder.
    case withContent
  }

  /// Removes what a path leads to.
  ///
  /// - Throws: `Failure` for a folder, unless its content goes too, and for the folders of the tree itself.
  package func remove(_ path: TreePath, _ removal: Removal) throws {
    guard !path.components.isEmpty else {
      throw Failure(nil, "this path is the top of the tree, which stays; nothing was removed")
    }
    let node = try node(at: path)
    guard node.isDirectory else { return try removeFile(path) }
    guard !node.isPermanent else { throw try refusal(of: node, path) }
    guard removal == .withContent else {
      throw Failure(path.string, "it is a folder; `keyhole rm -r` removes it")
    }
    try removeFolder(node, path)
  }

  /// Why a folder of the tree itself is not emptied: the path of one, or an unset variable in a script, would delete
  /// every setting or secret below it.
  private func refusal(of node: Node, _ path: TreePath) throws -> Failure {
    let names = try attempt(path) { () throws(StoreError) in try tree.list(node).map(\.name) }
    let shown = names.prefix(3).map { path.appending($0).string }.joined(separator: ", ")
    let more = names.count > 3 ? " and \(names.count - 3) more" : ""
    let content = names.isEmpty ? "it is empty" : "it holds \(shown)\(more); remove these by name"
    return Failure(path.string, "this folder always stays, and nothing was removed; \(content)")
  }

  private func removeFolder(_ node: Node, _ path: TreePath) throws {
    for entry in try attempt(path, { () throws(StoreError) in try tree.list(node) }) {
      let child = path.appending(entry.name)
      if entry.isDirectory {
        try removeFolder(tree.node(of: entry), child)
      } else {
        try removeFile(child)
      }
    }
    try removeEmptyFolder(path)
  }

  private func removeFile(_ path: TreePath) throws {
    let folder = try node(at: path.parent)
    try attempt(path) { () throws(StoreError) in try tree.remove(path.name.utf8, in: folder) }
  }

  /// A service's folder is gone with its last item; here none was made to keep.
  private func removeEmptyFolder(_ path: TreePath) throws {
    let folder = try node(at: path.parent)
    try attempt(path) { () throws(StoreError) in try tree.removeDirectory(path.name.utf8, in: folder) }
  }
}
