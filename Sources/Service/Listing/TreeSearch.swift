import Model
import Store
import Tree

/// Searches of the tree by names and attributes. No value and no secret is read for it.
package struct TreeSearch {
  private let session: TreeSession

  package init(_ session: TreeSession) {
    self.session = session
  }

  /// The suites, keys, services and items below a path whose name fits.
  package func find(_ pattern: NamePattern, below path: TreePath, _ body: (TreePath) -> Void) throws {
    try visit(path) { entry, _ in
      if pattern.fits(entry.path.name) || pattern.fits(plainName(entry) ?? "") { body(entry.path) }
    }
  }

  /// The keys and items below a path that all terms fit.
  package func search(_ terms: [Term], below path: TreePath, _ body: (TreePath) -> Void) throws {
    try visit(path) { entry, isLeaf in
      guard isLeaf else { return }
      let fields = try fields(of: entry)
      if terms.allSatisfy({ $0.fits(fields) }) { body(entry.path) }
    }
  }

  /// An item's files are the item's; `isLeaf`: it is a key or an item.
  private func visit(_ path: TreePath, _ body: (TreeEntry, _ isLeaf: Bool) throws -> Void) throws {
    for entry in try session.entries(at: path) where !entry.node.isPermanent {
      let isLeaf = entry.path.isItem || !entry.node.isDirectory
      try body(entry, isLeaf)
      if !isLeaf { try visit(entry.path, body) }
    }
    for entry in try session.entries(at: path) where entry.node.isPermanent { try visit(entry.path, body) }
  }

  private func plainName(_ entry: TreeEntry) -> String? {
    guard entry.path.name.contains("%") else { return nil }
    return (try? session.tree.attribute("user.keyhole.name", of: entry.node)).map {
      String(decoding: $0, as: UTF8.self)
    }
  }

  /// The texts that a term may fit, by the names of attributes.
  private func fields(of entry: TreeEntry) throws -> [(name: String, value: String)] {
    guard entry.path.isItem else { return [("path", entry.path.string)] }
    return try session.attempt(entry.path) { () throws(StoreError) in
      var fields = [("path", entry.path.string)]
      for name in try session.tree.attributeNames(of: entry.node) {
        let value = String(decoding: try session.tree.attribute(name, of: entry.node), as: UTF8.self)
        fields.append((String(name.dropFirst("user.".count)), value))
      }
      return fields
    }
  }
}

extension TreeSearch {
  /// `TEXT`: a part of a name or of an attribute; `NAME=TEXT`: a part of that attribute.
  package struct Term {
    private let attribute: String?
    private let pattern: NamePattern

    package init(_ text: String) {
      let parts = text.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
      attribute = parts.count == 2 ? parts[0] : nil
      pattern = NamePattern(parts.last ?? "")
    }

    fileprivate func fits(_ fields: [(name: String, value: String)]) -> Bool {
      fields.contains { field in
        guard let attribute else { return pattern.fits(field.value) }
        return (field.name == attribute || field.name == "keyhole.\(attribute)") && pattern.fits(field.value)
      }
    }
  }
}
