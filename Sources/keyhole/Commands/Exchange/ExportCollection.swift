import Formats
import ImportExport
import Model
import Prompting
import SecretMemory
import Service
import Store
import Tree
import Vault

/// The settings and items at the paths, each once.
struct ExportCollection {
  let session: TreeSession
  var contents = ExportContents()
  let damaged = DamagedSecrets()
  private var seen: Set<String> = []

  /// Items of which not even the name can be read: they are in no folder.
  func noteDamagedEntries() {
    let entries = session.tree.keychain?.engine.encryption?.damagedEntries ?? []
    damaged.paths += entries
  }

  init(session: TreeSession) {
    self.session = session
  }

  mutating func add(_ path: TreePath) throws {
    try visit(try session.node(at: path), path)
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
    let attributes = try session.attempt(path) { () throws(StoreError) in
      var attributes: [ItemEntry.Attribute] = []
      for name in try session.tree.attributeNames(of: node) {
        attributes.append(ItemEntry.Attribute(name, try session.tree.attribute(name, of: node)))
      }
      return attributes
    }
    let modified = attributes.first { $0.name == "user.keyhole.modified" }.flatMap {
      Timestamp(iso8601: String(decoding: $0.value, as: UTF8.self))
    }
    let item = try session.attempt(path) { () throws(StoreError) in try session.tree.item(of: node) }
    let reader = ItemReader(session, path, item)
    let read = { [damaged] (name: String) throws(FormatError) -> SecretBytes? in
      do throws(StoreError) { return try reader.secret(name) } catch {
        guard case .damaged = error else { throw FormatError("\(path.string): \(error.message)") }
        damaged.paths.append(name == "value" ? path.string : "\(path.string)/\(name)")
        return nil
      }
    }
    let uri = { () throws(FormatError) -> SecretBytes? in try read(ItemSecrets.otpauthName) }
    contents.items.append(
      ExportItem(
        itemClass, path: path.string, attributes: attributes, modified: modified,
        secret: { () throws(FormatError) -> SecretBytes? in try read("value") },
        otpauth: item?.otpauth == nil ? nil : uri))
  }
}

/// The paths of secrets that can't be read.
final class DamagedSecrets {
  var paths: [String] = []

  /// - Throws: `Failure` where there is one.
  func report() throws {
    for path in paths.dropFirst() {
      StandardError.write("keyhole: \(path.escapedForTerminal): it is damaged and was left out\n")
    }
    guard let first = paths.first else { return }
    throw Failure(
      first, "it is damaged and was left out; `keyhole doctor` says more. All others were exported")
  }
}

extension TreePath {
  fileprivate var itemClass: ItemClass? { components.count > 1 ? ItemClass(rawValue: components[1]) : nil }
}

/// The secrets of an item, asked about once.
private final class ItemReader {
  private let session: TreeSession
  private let path: TreePath
  /// As it was found; nil: it can't be asked about.
  private let item: Item?
  private var permit: Permit?

  init(_ session: TreeSession, _ path: TreePath, _ item: Item?) {
    (self.session, self.path, self.item) = (session, path, item)
  }

  func secret(_ name: String) throws(StoreError) -> SecretBytes {
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
    let handle = try tree.open(root(path), .read, by: caller, permit)
    defer { handle.close() }
    var secret: SecretBytes?
    try handle.read(at: 0, count: .max) { bytes in
      // Without memory it stays nil.
      secret = try? SecretBytes(copying: bytes)
    }
    guard let secret else { throw .outOfMemory }
    return secret
  }

  private func root(_ path: TreePath) throws(StoreError) -> Node {
    var node = root
    for component in path.components { node = try tree.child(of: node, named: component.utf8) }
    return node
  }
}
