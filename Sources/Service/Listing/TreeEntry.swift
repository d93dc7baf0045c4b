package import Model
import Platform
import Store
package import Tree

/// A file or folder of the tree, as a listing shows it. It holds no value.
package struct TreeEntry {
  /// The path from the folder that is listed.
  package let name: String
  /// The path from the top of the tree.
  package let path: TreePath
  package let node: Node

  /// The part of an entry that takes a look into the store.
  package struct Details {
    /// `directory`, the type of a setting, `secret` or `file`.
    package let type: String
    /// In bytes.
    package let size: Int
    package let modified: Timestamp
  }

  /// - Throws: `Failure` where it is gone, or the store does not answer.
  package func details(_ session: TreeSession) throws -> Details {
    let status = try session.attempt(path) { () throws(StoreError) in
      try session.tree.status(of: node, for: .current)
    }
    return Details(
      type: session.type(of: node, status), size: status.size, modified: status.modified)
  }
}

extension TreeSession {
  /// The entries of a folder by the bytes of their names, or a file itself. `control`: with `.keyhole`, which is listed
  /// nowhere else.
  package func entries(at path: TreePath, control: Bool = false) throws -> [TreeEntry] {
    let node = try node(at: path)
    guard node.isDirectory else { return [TreeEntry(name: path.name, path: path, node: node)] }
    var entries = try attempt(path) { () throws(StoreError) in try tree.list(node) }
      .map { TreeEntry(name: $0.name, path: path.appending($0.name), node: tree.node(of: $0)) }
    if control, path.components.isEmpty, let node = try existingNode(at: TreePath(".keyhole")) {
      entries.append(TreeEntry(name: ".keyhole", path: TreePath(".keyhole"), node: node))
    }
    return entries.sorted { ExactString($0.name) < ExactString($1.name) }
  }

  /// The same with all that is below; names are paths from the folder.
  package func entriesBelow(_ path: TreePath, _ body: (TreeEntry) throws -> Void) throws {
    try visit(path, "", body)
  }

  private func visit(_ path: TreePath, _ prefix: String, _ body: (TreeEntry) throws -> Void) throws {
    for entry in try entries(at: path) {
      let name = prefix + entry.name
      try body(TreeEntry(name: name, path: entry.path, node: entry.node))
      if entry.node.isDirectory { try visit(entry.path, name + "/", body) }
    }
  }

  fileprivate func type(of node: Node, _ status: NodeStatus) -> String {
    if status.kind == .directory { return "directory" }
    if node.isSecret { return "secret" }
    guard let type = try? tree.attribute("user.keyhole.type", of: node) else { return "file" }
    return String(decoding: type, as: UTF8.self)
  }
}
