package import Formats
package import Model
import SecretMemory
import Store
import Tree

/// The settings and items at some paths of the tree, each once, for an export.
package struct ExportCollection {
  package private(set) var contents = ExportContents()
  /// The secrets that can't be read. It grows while the secrets of `contents` are read.
  package let damaged = DamagedSecrets()
  /// Items of which attributes have no place in an export, and how many: their names are empty or too long.
  package private(set) var unlistedAttributes: [(path: String, count: Int)] = []
  private let session: TreeSession
  private var secrets: [ExportedSecrets] = []
  private var seen: Set<String> = []

  package init(session: TreeSession) {
    self.session = session
  }

  /// Adds items of which not even the name can be read to the damaged ones: they are in no folder.
  package func noteDamagedEntries() {
    damaged.add(session.tree.keychain?.engine.encryption?.damagedEntries ?? [])
  }

  /// Opens the secrets that may be refused, and keeps them until they are read: so that nothing is written where one is refused.
  ///
  /// - Throws: `FormatError` that names the first one.
  package func openGuardedSecrets() throws(FormatError) {
    for secrets in secrets { try secrets.open() }
  }

  /// Adds what a path leads to, with all below it, and with the whole keychain the collections of the Secret Service.
  ///
  /// - Throws: `Failure`.
  package mutating func add(_ path: TreePath) throws {
    try visit(try session.node(at: path), path)
    guard path.components.isEmpty || path.components == ["keychain"] else { return }
    contents.collections = try session.attempt(path) { () throws(StoreError) in
      try session.stores.serviceCollections()
    }
  }

  private mutating func visit(_ node: Node, _ path: TreePath) throws {
    if node.isSecret { return try addItem(path.parent) }
    guard node.isDirectory else { return try addSetting(path) }
    let entries = try session.attempt(path) { () throws(StoreError) in try session.tree.list(node) }
    for entry in entries.sorted(by: { ExactString($0.name) < ExactString($1.name) }) {
      try visit(session.tree.node(of: entry), path.appending(entry.name))
    }
  }

  private mutating func addSetting(_ path: TreePath) throws {
    guard path.components.count == 3, seen.insert(path.string).inserted else { return }
    let suite = try plainName(path.parent)
    let key = try plainName(path)
    let snapshot = try session.attempt(path) { () throws(StoreError) in
      try session.tree.settings.suite(suite).fetch()
    }
    guard let entry = snapshot?.entries[key] else { throw Failure(path.string, .notFound) }
    if contents.suites.last?.0 != suite { contents.suites.append((suite, [])) }
    contents.suites[contents.suites.count - 1].1.append(
      SettingEntry(suite: suite, key: key, value: entry.value, modified: entry.modified))
  }

  private func plainName(_ path: TreePath) throws -> ExactString {
    let node = try session.node(at: path)
    let name = try session.attempt(path) { () throws(StoreError) in
      try session.tree.attribute("user.keyhole.name", of: node)
    }
    return ExactString(utf8: name) ?? ExactString(path.name)
  }

  private mutating func addItem(_ path: TreePath) throws {
    guard seen.insert(path.string).inserted, let itemClass = path.itemClass else { return }
    let node = try session.node(at: path)
    let attributes = try attributes(of: node, path)
    let modified = attributes.first { $0.name == "user.keyhole.modified" }.flatMap {
      Timestamp(iso8601: String(decoding: $0.value, as: UTF8.self))
    }
    let item = try session.attempt(path) { () throws(StoreError) in try session.tree.item(of: node) }
    let unlisted = item.map(ItemAttributes.unlistedCount) ?? 0
    if unlisted > 0 { unlistedAttributes.append((path.string, unlisted)) }
    let secrets = ExportedSecrets(session, path, item, damaged)
    self.secrets.append(secrets)
    let uri = { () throws(FormatError) -> SecretBytes? in try secrets.read(ItemSecrets.otpauthName) }
    contents.items.append(
      ExportItem(
        itemClass, path: path.string, attributes: attributes, modified: modified,
        secret: { () throws(FormatError) -> SecretBytes? in try secrets.read("value") },
        otpauth: item?.otpauth == nil ? nil : uri))
  }

  private func attributes(of node: Node, _ path: TreePath) throws -> [ItemEntry.Attribute] {
    try session.attempt(path) { () throws(StoreError) in
      var attributes: [ItemEntry.Attribute] = []
      for name in try session.tree.attributeNames(of: node) {
        attributes.append(ItemEntry.Attribute(name, try session.tree.attribute(name, of: node)))
      }
      return attributes
    }
  }
}

/// The paths of secrets that can't be read.
package final class DamagedSecrets {
  package private(set) var paths: [String] = []
  /// Called when the secret of an item has been read, or could not be.
  package var onSecret: () -> Void = {}

  func add(_ paths: [String]) {
    self.paths += paths
  }

  /// The failure of an export that left some out; nil: it left out none.
  package var failure: Failure? {
    paths.first.map {
      Failure(
        $0, "it is damaged and was left out; `keyhole doctor --secrets` says more. All others were exported")
    }
  }
}

extension TreePath {
  fileprivate var itemClass: ItemClass? { components.count > 1 ? ItemClass(rawValue: components[1]) : nil }
}

/// The secrets of an item, for which a person is asked once.
private final class ExportedSecrets {
  private let session: TreeSession
  private let path: TreePath
  /// As it was found; nil: it can't be asked about.
  private let item: Item?
  private let damaged: DamagedSecrets
  private var permit: Permit?
  private var openedValue: SecretBytes?
  private var openedURI: SecretBytes?

  init(_ session: TreeSession, _ path: TreePath, _ item: Item?, _ damaged: DamagedSecrets) {
    (self.session, self.path, self.item, self.damaged) = (session, path, item, damaged)
  }

  /// Opens those of an item that may be refused; one that is damaged is named when it is read.
  func open() throws(FormatError) {
    do throws(StoreError) {
      guard let item, try session.stores.keychain?.mayRefuse(item) == true else { return }
      openedValue = try secret("value")
      if item.otpauth != nil { openedURI = try secret(ItemSecrets.otpauthName) }
    } catch {
      if case .damaged = error { return }
      throw FormatError(path.string, error)
    }
  }

  private func takeOpened(_ name: String) -> SecretBytes? {
    name == "value" ? openedValue.take() : openedURI.take()
  }

  /// The secret that a file of the item's folder holds; nil: it is damaged.
  func read(_ name: String) throws(FormatError) -> SecretBytes? {
    defer { if name == "value" { damaged.onSecret() } }
    if let opened = takeOpened(name) { return opened }
    do throws(StoreError) { return try secret(name) } catch {
      guard case .damaged = error else { throw FormatError(path.string, error) }
      damaged.add([name == "value" ? path.string : "\(path.string)/\(name)"])
      return nil
    }
  }

  private func secret(_ name: String) throws(StoreError) -> SecretBytes {
    if permit == nil, let item, let keychain = session.stores.keychain {
      permit = try keychain.permission(
        for: item, to: .read, item.secrets, path: path.string, by: session.caller
      ).fetch()
    }
    return try session.secret(at: path.appending(name), permit)
  }
}

extension TreeSession {
  fileprivate func secret(at path: TreePath, _ permit: Permit?) throws(StoreError) -> SecretBytes {
    let handle = try tree.open(find(path.components[...]), .read, by: caller, permit)
    defer { handle.close() }
    var secret: SecretBytes?
    try handle.read(at: 0, count: .max) { bytes in
      // Without memory it stays nil.
      secret = try? SecretBytes(copying: bytes)
    }
    guard let secret else { throw .outOfMemory }
    return secret
  }
}
