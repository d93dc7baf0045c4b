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
    if path.isOtpauth, try session.existingNode(at: path.parent) != nil,
      try session.existingNode(at: path) == nil
    {
      throw Failure(path.string, "the item has none; nothing was removed", .notFound)
    }
    node = try session.node(at: path)
    isOfTree = node.isPermanent
    guard scope == .withContent || !node.isDirectory || path.isItem else {
      throw Failure(path.string, "it is a folder; `keyhole rm -r` removes it")
    }
    count = node.isDirectory ? try session.count(in: node, path) : 1
  }

  /// Removes it, many keys and items in one transaction; `advance` gets how many more are removed.
  ///
  /// - Throws: `Failure`. What was removed before it is removed.
  package func run(_ advance: (Int) -> Void = { _ in }) throws {
    try run(RemovalPace(), advance)
  }

  func run(_ pace: RemovalPace, _ advance: (Int) -> Void = { _ in }) throws {
    guard node.isDirectory else {
      try session.removeFile(path)
      return advance(1)
    }
    var content = Content()
    try session.collect(node, path, into: &content)
    var pace = pace
    try pace.run(content.stored) { part in
      guard try session.remove(part, of: path) else { return false }
      advance(part.count)
      return true
    }
    for file in content.files {
      try session.removeFile(file)
      advance(1)
    }
    for folder in content.folders { try session.removeEmptyFolder(folder) }
    if !isOfTree { try session.removeEmptyFolder(path) }
  }

  /// All that is in a folder.
  fileprivate struct Content {
    /// Keys, and items as a whole, in the order of their paths.
    var stored: [(path: TreePath, node: Node)] = []
    var files: [TreePath] = []
    /// The folders in it that stay when they are empty, the inner ones first.
    var folders: [TreePath] = []
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

  fileprivate func collect(_ node: Node, _ path: TreePath, into content: inout TreeRemoval.Content) throws {
    guard !path.isItem else { return content.stored.append((path, node)) }
    for entry in try entries(of: node, path).sorted(by: { ExactString($0.name) < ExactString($1.name) }) {
      let (child, node) = (path.appending(entry.name), tree.node(of: entry))
      if entry.isDirectory {
        try collect(node, child, into: &content)
        if !node.isPermanent, !child.isItem { content.folders.append(child) }
      } else if child.isKey, !node.isScratch {
        content.stored.append((child, node))
      } else {
        content.files.append(child)
      }
    }
  }

  /// Removes some of the keys and items of a folder together.
  ///
  /// - Returns: false where none was removed, and each by itself may be.
  fileprivate func remove(_ part: ArraySlice<(path: TreePath, node: Node)>, of folder: TreePath) throws
    -> Bool
  {
    let path = part.count == 1 ? part.first?.path : nil
    return try attempt(path ?? folder) { () throws(StoreError) in
      do throws(StoreError) { try tree.remove(part.map(\.node)) } catch {
        guard part.count > 1, error.mayConcernOneOfMany else { throw error }
        return false
      }
      return true
    }
  }

  private func entries(of node: Node, _ path: TreePath) throws -> [DirectoryEntry] {
    try attempt(path) { () throws(StoreError) in try tree.list(node) }
  }

  fileprivate func removeFile(_ path: TreePath) throws {
    let folder = try node(at: path.parent)
    try attempt(path) { () throws(StoreError) in try tree.remove(path.name.utf8, in: folder) }
  }

  /// The folder of a service, and of an item, is gone with its last item.
  fileprivate func removeEmptyFolder(_ path: TreePath) throws {
    guard try existingNode(at: path) != nil else { return }
    let folder = try node(at: path.parent)
    try attempt(path) { () throws(StoreError) in try tree.removeDirectory(path.name.utf8, in: folder) }
  }
}

extension StoreError {
  /// Whether a change of many things may have failed because of one of them, or of their number.
  fileprivate var mayConcernOneOfMany: Bool {
    switch self {
    case .damaged, .tooLarge, .noSpace, .quotaExceeded, .system, .unsupported, .notPermitted: true
    default: false
    }
  }
}
