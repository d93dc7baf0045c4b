import Model
import Store
import Tree

/// The removal of what a path leads to: first counted, then done.
package struct TreeRemoval {
  /// The content that a removal takes with it.
  package enum Scope: Sendable {
    /// A key, or an item with its secrets; other folders are refused.
    case fileOrItem
    /// All that is in a folder.
    case withContent
  }

  package let path: TreePath
  /// How many keys and items it removes.
  package let count: Int
  /// Whether the folder is one of the tree itself, which stays when its content is removed.
  package let isOfTree: Bool
  package let session: TreeSession
  private let node: Node

  /// - Throws: `Failure` for the top of the tree, for what is not there, and for a folder unless its content goes too.
  package init(of path: TreePath, _ scope: Scope, in session: TreeSession) throws {
    guard !path.components.isEmpty else {
      throw Failure(nil, "this path is the top of the tree, which stays; nothing was removed")
    }
    self.path = path
    self.session = session
    node = try session.node(at: path)
    isOfTree = node.isPermanent
    guard scope == .withContent || !node.isDirectory || path.isItem else {
      throw Failure(path.string, "it is a folder; `keyhole rm -r` removes it")
    }
    count = node.isDirectory ? try session.count(in: node, path) : 1
  }

  /// Removes it; `advance` is called after each key and item.
  package func run(_ advance: () -> Void = {}) throws {
    guard node.isDirectory else {
      try session.removeFile(path)
      return advance()
    }
    try session.removeContent(of: node, path, advance)
    if !isOfTree { try session.removeEmptyFolder(path) }
    if path.isItem { advance() }
  }
}

extension TreeSession {
  fileprivate func count(in node: Node, _ path: TreePath) throws -> Int {
    guard !path.isItem else { return 1 }
    return try entries(of: node, path).reduce(0) { sum, entry in
      guard entry.isDirectory else { return sum + 1 }
      return try sum + count(in: tree.node(of: entry), path.appending(entry.name))
    }
  }

  /// `otpauth` before `value`: with the secret an item goes, and its URI must not go by the way.
  fileprivate func removeContent(of node: Node, _ path: TreePath, _ advance: () -> Void) throws {
    for entry in try entries(of: node, path).sorted(by: { ExactString($0.name) < ExactString($1.name) }) {
      let child = path.appending(entry.name)
      if entry.isDirectory {
        try removeContent(of: tree.node(of: entry), child, advance)
        if !tree.node(of: entry).isPermanent { try removeEmptyFolder(child) }
        if child.isItem { advance() }
      } else {
        try removeFile(child)
        if !path.isItem { advance() }
      }
    }
  }

  private func entries(of node: Node, _ path: TreePath) throws -> [DirectoryEntry] {
    try attempt(path) { () throws(StoreError) in try tree.list(node) }
  }

  fileprivate func removeFile(_ path: TreePath) throws {
    let folder = try node(at: path.parent)
    try attempt(path) { () throws(StoreError) in try tree.remove(path.name.utf8, in: folder) }
  }

  /// A service's folder is gone with its last item; here none was made to keep.
  fileprivate func removeEmptyFolder(_ path: TreePath) throws {
    let folder = try node(at: path.parent)
    try attempt(path) { () throws(StoreError) in try tree.removeDirectory(path.name.utf8, in: folder) }
  }
}
