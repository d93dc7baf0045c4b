import Model
import Store
import Tree
import Views

/// The view or the item that an adoption makes, with the items of the view.
///
/// A journal names them by their numbers, with the times of their changes: the names of items are on the disk nowhere else
/// without a seal.
struct AdoptedTarget {
  /// The path in the tree: `views/NAME`, or `keychain/generic/NAME/file`.
  let path: String

  private var treePath: TreePath { TreePath(path) }
  private var isView: Bool { path.hasPrefix("views/") }

  /// The name of the view and of the service of its items, or of the service of the item.
  var name: String { isView ? treePath.name : treePath.parent.name }

  /// The service of the items.
  var service: String { "keychain/generic/\(name)" }

  private func view(_ session: TreeSession) throws -> View? {
    guard isView else { return nil }
    return try session.attempt(treePath) { () throws(StoreError) in
      try session.tree.views?.view(ExactString(name))
    }
  }

  private func items(_ session: TreeSession) throws -> [Item] {
    try session.attempt(TreePath(service)) { () throws(StoreError) in
      guard let keychain = session.stores.keychain else { throw .notFound }
      let service = ExactString(name)
      return try keychain.read { $0.items(in: service, of: .generic) }
    }
  }

  /// The items that were made, wherever they are now.
  private func items(_ made: AdoptionJournal.Made, _ session: TreeSession) throws -> [Item] {
    try session.attempt(TreePath(service)) { () throws(StoreError) in
      guard let keychain = session.stores.keychain else { throw .notFound }
      return try keychain.read { index in index.all.filter { made[$0.id.rawValue] != nil } }
    }
  }

  /// Where the view or the item of an adoption is now: it may have been renamed. nil: it is not there any more.
  static func path(of entry: AdoptionJournal.Entry, _ session: TreeSession) throws -> String? {
    let target = AdoptedTarget(path: entry.target)
    guard target.isView else {
      return try target.items(entry.made, session).first.map { FileTree.path(of: $0.identity) }
    }
    let views = try session.attempt(TreePath("views")) { () throws(StoreError) in
      try session.tree.views?.all() ?? []
    }
    return views.first { entry.made[$0.document.id.rawValue] != nil }.map { "views/\($0.name.string)" }
  }

  /// All that is in the service, and the view.
  func made(_ session: TreeSession) throws -> AdoptionJournal.Made {
    var made: AdoptionJournal.Made = [:]
    for item in try items(session) { made[item.id.rawValue] = item.modified.word }
    // By what it refers to: its lengths are sealed with it, and change without it.
    if let view = try view(session) { made[view.document.id.rawValue] = "view" }
    return made
  }

  /// Why what was made for a file can't be removed: it was changed, or something else uses it. nil: it can.
  func obstacle(
    _ made: AdoptionJournal.Made, for file: String, _ session: TreeSession
  ) throws -> String? {
    guard !made.isEmpty else { return "it is not known which items were made for the file" }
    if let new = try items(session).first(where: { made[$0.id.rawValue] == nil }) {
      return "\(FileTree.path(of: new.identity)) was added to \(service)"
    }
    let items = try items(made, session)
    for item in items where made[item.id.rawValue] != item.modified.word || item.otpauth != nil {
      return "\(FileTree.path(of: item.identity)) was changed or renamed since"
    }
    let own = Set(items.map { FileTree.path(of: $0.identity) })
    let all = try session.attempt(TreePath("views")) { () throws(StoreError) in
      try session.tree.views?.all() ?? []
    }
    for view in all {
      if isView, view.name == ExactString(name) {
        guard view.links.allSatisfy({ $0 == file }) else { return "\(path) has another link" }
      } else if view.references.contains(where: own.contains) {
        return "the view \(view.name.string) has values of it"
      }
    }
    return nil
  }

  /// Removes the view, then its items: those that were made, or all of the service where that is not known. What is not there any more
  /// is passed by.
  func remove(_ session: TreeSession, _ made: AdoptionJournal.Made = [:]) throws {
    if let view = try view(session) {
      try session.attempt(treePath) { () throws(StoreError) in try session.tree.views?.remove(view) }
    }
    let items = try made.isEmpty ? items(session) : items(made, session)
    try session.attempt(TreePath(service)) { () throws(StoreError) in
      if !items.isEmpty { try session.stores.keychain?.remove(items.map(\.id)) }
    }
    session.stores.settleKeychain()
  }
}

extension Timestamp {
  /// Seconds and nanoseconds since 1970.
  fileprivate var word: String { "\(seconds).\(nanoseconds)" }
}
