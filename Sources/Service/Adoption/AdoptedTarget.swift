import Model
import Platform
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

  /// The path in the tree that a link of an adoption leads to: to an item its own, without `value`. nil: it leads elsewhere.
  static func path(of link: String, _ entry: AdoptionJournal.Entry) -> String? {
    let ending = TreePath(entry.target).isView ? "" : "/value"
    guard let mount = mount(of: entry.link, to: entry.target + ending), link.hasPrefix(mount) else {
      return nil
    }
    let path = Substring(link.utf8.dropFirst(mount.utf8.count))
    return path.hasSuffix(ending) ? String(Substring(path.utf8.dropLast(ending.utf8.count))) : nil
  }

  /// The beginning of a link, up to the path of the tree that it leads to; nil: it leads to another one.
  static func mount(of link: String, to path: String) -> String? {
    link.utf8.suffix(path.utf8.count).elementsEqual(path.utf8)
      ? String(Substring(link.utf8.dropLast(path.utf8.count))) : nil
  }

  /// The view and the items of its service that it refers to, or the item: an item that something else has put into the service is
  /// not among them.
  func made(_ session: TreeSession) throws -> AdoptionJournal.Made {
    var made: AdoptionJournal.Made = [:]
    let view = try view(session)
    // By what it refers to: its lengths are sealed with it, and change without it.
    if let view { made[view.document.id.rawValue] = "view" }
    for item in try items(session) {
      let path = FileTree.path(of: item.identity)
      guard isView ? view?.references.contains(path) == true : path == self.path else { continue }
      made[item.id.rawValue] = item.modified.word
    }
    return made
  }

  /// Whether neither a view nor a service has the name, so that no item is replaced and none is taken for one of this file.
  func isFree(_ session: TreeSession) throws -> Bool {
    guard try session.existingNode(at: TreePath(service)) == nil else { return false }
    return try !isView || session.existingNode(at: treePath) == nil
  }

  /// Whether what has the name was made for a file by a run that was ended before its journal said so: a view without entries, or just the
  /// file's content.
  func isMade(for content: AdoptedContent, _ session: TreeSession) throws -> Bool {
    let file = isView ? treePath : treePath.appending("value")
    guard try session.existingNode(at: file) != nil else { return false }
    if let view = try view(session), view.references.isEmpty { return true }
    // One that can't be read, as an item is missing, is another one.
    do {
      // An item is without the line feed at its end, until it keeps that.
      return try content.isEqual(to: session.secret(at: file), exceptLineFeed: !isView)
    } catch is Failure { return false }
  }

  /// Why what was made for a file can't be removed: it was changed, or something else uses it. nil: it can.
  ///
  /// `home`: the service in which the items were made.
  func obstacle(
    _ made: AdoptionJournal.Made, for file: String, in home: String, _ session: TreeSession
  ) throws -> String? {
    guard !made.isEmpty else { return "it is not known which items were made for the file" }
    if let new = try items(session).first(where: { made[$0.id.rawValue] == nil }) {
      return "\(FileTree.path(of: new.identity)) was added to \(service)"
    }
    let items = try items(made, session)
    for item in items {
      let path = FileTree.path(of: item.identity)
      // Names and attributes have no part in the time of its change.
      guard made[item.id.rawValue] == item.modified.word, item.otpauth == nil, path.hasPrefix(home + "/"),
        item.attributes.keys.allSatisfy({ $0.utf8.starts(with: "keyhole.".utf8) })
      else { return "\(path) was changed or renamed since" }
    }
    let own = Set(items.map { FileTree.path(of: $0.identity) })
    let all = try session.attempt(TreePath("views")) { () throws(StoreError) in
      try session.tree.views?.all() ?? []
    }
    for view in all {
      if isView, view.name == ExactString(name) {
        // Of a folder that was renamed, the former path of the link is there still.
        guard view.links.allSatisfy({ $0 == file || !Files.hasName($0) }) else {
          return "\(path) has another link"
        }
      } else if view.references.contains(where: own.contains) {
        return "the view \(view.name.string) has values of it"
      }
    }
    return nil
  }

  /// Removes the view, then the items that were made. One that is not there any more is passed by.
  func remove(_ session: TreeSession, _ made: AdoptionJournal.Made) throws {
    if let view = try view(session), made[view.document.id.rawValue] != nil {
      try session.attempt(treePath) { () throws(StoreError) in try session.tree.views?.remove(view) }
    }
    let items = try items(made, session)
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
