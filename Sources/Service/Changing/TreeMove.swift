import Model
import SecretMemory
import Store
import Tree

/// A move or a copy of a key, an item or a folder to another path of the tree.
///
/// Nothing is replaced, and the protection of an item never becomes weaker: a target whose folder has other rules than the
/// source's is refused.
package struct TreeMove {
  private let session: TreeSession
  private let source: TreePath
  private let target: TreePath
  private let node: Node

  /// `target`: the new path, or a folder that is there, in which the source keeps its name.
  ///
  /// - Throws: `Failure` where the source is missing, the target is taken, or the two are of different kinds.
  package init(_ source: TreePath, to target: TreePath, in session: TreeSession) throws {
    self.session = session
    try Self.requireWhole(source, target)
    let source = source.ofItem
    self.source = source
    node = try session.node(at: source)
    guard !node.isPermanent, !node.isControl else {
      throw Failure(source.string, "this is a part of the tree itself")
    }
    self.target = try Self.place(source, target.ofItem, session)
    try requireSameKind()
    guard try session.existingNode(at: self.target) == nil else {
      throw Failure(self.target.string, StoreError.exists)
    }
    try requireSameRules()
  }

  /// Renames it, in one step where it is no key of another suite.
  package func move() throws {
    let folder = try session.node(at: source.parent)
    let newFolder = try session.madeFolder(of: target)
    try session.attempt(source) { () throws(StoreError) in
      try session.tree.rename(
        source.name.utf8, in: folder, to: target.name.utf8, in: newFolder, replacing: false,
        by: session.caller)
    }
  }

  /// Copies a key, an item, or with `withContent` a folder: the keys of a suite at once, items one after the other.
  ///
  /// `advance` is called after each item.
  /// - Throws: `Failure` for a folder without `withContent`; for an item that can't be copied, and those before it are.
  package func copy(withContent: Bool = false, _ onItem: (Int, Int) -> Void = { _, _ in }) throws {
    if source.isItem { return try copyItem() }
    try requireCopyable()
    guard node.isDirectory else { return try copySetting() }
    guard withContent else { throw Failure(source.string, "it is a folder; `keyhole cp -r` copies it") }
    try source.components.first == "defaults" ? copySuite() : copyItems(onItem)
  }
}

// MARK: - What is refused

extension TreeMove {
  private static func place(
    _ source: TreePath, _ target: TreePath, _ session: TreeSession
  ) throws -> TreePath {
    guard target.components.count < source.components.count || target.components.isEmpty,
      let node = try session.existingNode(at: target), node.isDirectory, !target.isItem
    else { return target }
    return target.appending(source.name)
  }

  /// An item goes as a whole: its URI alone would be another item's.
  private static func requireWhole(_ source: TreePath, _ target: TreePath) throws {
    guard let path = [source, target].first(where: { $0.components.first == "keychain" && $0.isOfCode })
    else { return }
    let (from, to) = (source.string.quotedForShell, target.string.quotedForShell)
    let remedy =
      source.isOtpauth && target.isOtpauth
      ? "`keyhole get \(from) | keyhole set \(to)` copies it to an item that is there"
      : "name the items themselves"
    throw Failure(
      path.string, "it is a part of an item, and items are moved and copied as a whole; \(remedy)")
  }

  private func requireSameKind() throws {
    let (from, to) = (source.components, target.components)
    guard from[0] == to.first else {
      throw Failure(
        source.string,
        from[0] == "defaults"
          ? "settings are not encrypted, so a setting does not become a secret by itself: `keyhole get \(source.string) | "
            + "keyhole set keychain/generic/SERVICE/ACCOUNT` stores a copy"
          : "a secret would lie unencrypted among the settings; `keyhole get` prints it, and nothing copies it there"
      )
    }
    guard from[0] != "keychain" || from.count > 1 && to.count > 1 && from[1] == to[1] else {
      throw Failure(
        source.string, "items of one class don't move to another: what tells them apart is not the same")
    }
    guard from.count == to.count else {
      throw Failure(
        target.string,
        "it can't stand there; a path like \(source.string) has \(from.count) names, this one \(to.count)")
    }
  }

  private func requireCopyable() throws {
    let (from, to) = (source.string.quotedForShell, target.string.quotedForShell)
    switch source.components[0] {
    case "views":
      throw Failure(
        source.string,
        "a view is not copied; `keyhole view \(target.name.quotedForShell)` makes another one of its items")
    case "templates":
      throw Failure(
        source.string,
        "it is not copied; `keyhole get \(from) | keyhole set \(to)` makes another one of its text")
    default: return
    }
  }

  /// Rules of a service's folder hold for the items in it only.
  private func requireSameRules() throws {
    guard source.components.first == "keychain", source.components.count > 2 else { return }
    let (from, to) =
      source.isItem && source.components[1] != "other" ? (source.parent, target.parent) : (source, target)
    guard from.components.count == 3, !from.isItem, from.string != to.string, let rules = try rules(of: from),
      try self.rules(of: to, isNew: true) != rules
    else { return }
    throw Failure(
      from.string,
      "it has rules for programs, which would no longer hold; `keyhole attr \(to.string.quotedForShell) keyhole.programs RULES` gives the "
        + "new place the same ones, as `keyhole attr \(from.string.quotedForShell) keyhole.programs` prints them"
    )
  }

  /// `isNew`: nothing has to be in the folder: rules are kept for it all the same.
  private func rules(of folder: TreePath, isNew: Bool = false) throws -> [UInt8]? {
    guard let node = try session.existingNode(at: folder) else {
      guard isNew, folder.components.count == 3, let itemClass = ItemClass(rawValue: folder.components[1])
      else {
        return nil
      }
      return try session.attempt(folder) { () throws(StoreError) in
        try session.tree.rules(forItemsOf: itemClass, in: folder.name).map { Array($0.utf8) }
      }
    }
    return try session.attempt(folder) { () throws(StoreError) in
      do throws(StoreError) { return try session.tree.attribute("user.keyhole.programs", of: node) } catch {
        guard error == .noSuchAttribute else { throw error }
        return nil
      }
    }
  }
}

// MARK: - Copies

extension TreeMove {
  private func copySetting() throws {
    let settings = session.stores.settings
    let (suite, key) = try (session.plainName(source.parent), session.plainName(source))
    let (newSuite, newKey) = try (Self.plain(target.parent), Self.plain(target))
    try session.attempt(source) { () throws(StoreError) in
      guard let entry = try settings.existingSuite(suite)?.fetch()?.entries[key] else { throw .notFound }
      if try settings.existingSuite(newSuite) == nil { try settings.createSuite(newSuite) }
      try settings.suite(newSuite).update { (contents) throws(StoreError) in
        guard contents.settings[newKey] == nil else { throw .exists }
        contents.settings[newKey] = Setting(entry.value)
      }
    }
  }

  private func copySuite() throws {
    let settings = session.stores.settings
    let (suite, newSuite) = (try session.plainName(source), try Self.plain(target))
    try session.attempt(source) { () throws(StoreError) in
      guard let snapshot = try settings.existingSuite(suite)?.fetch() else { throw .notFound }
      try settings.createSuite(newSuite)
      if let history = settings.engine.history, !history.keepsVersions(of: suite) {
        try history.setKeepsVersions(false, of: newSuite)
      }
      try settings.suite(newSuite).update { (contents) throws(StoreError) in
        guard contents.settings.isEmpty else { throw .exists }
        for (key, entry) in snapshot.entries { contents.settings[key] = Setting(entry.value) }
      }
    }
  }

  /// An item's folder without a secret is left out.
  private func copyItems(_ onItem: (Int, Int) -> Void) throws {
    let entries = try session.attempt(source) { () throws(StoreError) in try session.tree.list(node) }
    let names = entries.filter(\.isDirectory).map(\.name).sorted { ExactString($0) < ExactString($1) }
    for (index, name) in names.enumerated() {
      onItem(index, names.count)
      let item = try TreeMove(source.appending(name), to: target.appending(name), in: session)
      let isStored = try session.attempt(item.source) { () throws(StoreError) in
        try session.tree.item(of: item.node) != nil
      }
      guard isStored else { continue }
      try item.copyItem()
    }
  }

  private static func plain(_ path: TreePath) throws -> ExactString {
    do throws(StoreError) {
      guard let name = try PathName(creating: path.name.utf8).plain else {
        throw .invalidName(reason: "`%~` marks names that are cut; it can't begin a new one")
      }
      return name
    } catch {
      throw Failure(path.string, error)
    }
  }

  /// The new item has the secrets, attributes, flags and rules of the other, and times of its own.
  private func copyItem() throws {
    guard let keychain = session.stores.keychain else { throw Failure(source.string, .notFound) }
    let identity = try newIdentity()
    try session.attempt(source) { () throws(StoreError) in
      guard let item = try session.tree.item(of: node) else { throw .notFound }
      let given = try keychain.permission(
        for: item, to: .read, item.secrets, path: source.string, by: session.caller
      ).fetch()
      let new = item.copy(named: identity)
      let secret = try keychain.secret(of: item, given)
      let permit = try session.stores.permission(toReplace: nil, with: new, at: target.string).fetch()
      guard item.otpauth != nil else {
        _ = try keychain.add(new, secret: secret, permit)
        return
      }
      _ = try keychain.add(new, secret: secret, otpauth: try keychain.otpauth(of: item, given), permit)
    }
    session.stores.settleKeychain()
  }

  private func newIdentity() throws -> ItemIdentity {
    guard target.isItem, target.components[1] != "other",
      let itemClass = ItemClass(rawValue: target.components[1])
    else { throw Failure(target.string, "no item can be made there") }
    do throws(StoreError) {
      let level = ItemFolderName.leafLevel(of: itemClass)
      let leaf = try PathName(creating: target.name.utf8, level: level)
      guard let parent = try PathName(creating: target.parent.name.utf8).plain,
        let identity = ItemIdentity(itemClass, parent: parent, leaf: leaf)
      else {
        throw .invalidName(reason: "not an account, with `;domain=` `;protocol=` `;auth=` `;port=` `;path=`")
      }
      return identity
    } catch {
      throw Failure(target.string, error)
    }
  }
}

extension Item {
  fileprivate func copy(named identity: ItemIdentity) -> Item {
    var copy = self
    (copy.id, copy.identity) = (ItemID(rawValue: ""), identity)
    let now = Timestamp.now
    (copy.created, copy.modified) = (now, now)
    copy.otpauth = otpauth == nil ? nil : FurtherSecret(modified: now)
    return copy
  }
}

extension TreePath {
  /// Of an item's file its folder: an item's files stay with their item.
  fileprivate var ofItem: TreePath {
    parent.isItem && (name == "value" || isOtpauth) ? parent : self
  }
}

extension TreeSession {
  /// The name that a key or a suite has in the store.
  fileprivate func plainName(_ path: TreePath) throws -> ExactString {
    let node = try node(at: path)
    let name = try attempt(path) { () throws(StoreError) in
      try tree.attribute("user.keyhole.name", of: node)
    }
    return ExactString(utf8: name) ?? ExactString(path.name)
  }
}
