public import ArgumentParser
public import Formats
import ImportExport
import Model
import Platform
import Prompting
import SecretMemory
import Service
import Store
import Suites
import Tree

struct ExportCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "export", abstract: "Write settings and secrets as one file.",
    discussion: """
      Without a path, everything. Where a secret is among it, the file is sealed under a passphrase that is \
      asked for, or read as the first line of standard input; --plain leaves it unsealed. Of one \
      suite, `plist` is what `defaults export` of macOS writes. A secret that is damaged is named and left out, and \
      the command fails; all others are written.
      """)

  @Argument(
    help: "Paths of the tree, such as defaults/com.example.app or keychain/generic.", completion: .treePath)
  var paths: [String] = []

  @Option(help: "json, plist, env or tar.")
  var format = ExportFormat.json

  @Option(
    name: .shortAndLong,
    help: "The file to write; without it, standard output. It is there whole or not at all.",
    completion: .file())
  var output: String?

  @Flag(help: "Do not seal secrets.")
  var plain = false

  @Flag(help: "With --format env, begin each name with its service: SERVICE_ACCOUNT.")
  var prefix = false

  func validate() throws {
    if prefix, format != .env { throw ValidationError("--prefix is for --format env") }
  }

  func run() throws {
    allowUnlockedMemoryWithoutSwap()
    let wanted = paths.isEmpty ? [TreePath("")] : paths.map(TreePath.init)
    let needsKeychain = wanted.first { $0.needsKeychain } ?? wanted[0]
    let session = try TreeSession(for: needsKeychain)
    try session.requireTrust()
    var collection = Collection(session: session)
    for path in wanted { try collection.add(path) }
    collection.noteDamagedEntries()
    try session.requireTrust()
    let isSealed = !collection.contents.items.isEmpty && !plain
    if !isSealed {
      try write(collection, nil)
    } else {
      try write(collection, try Passphrases.new())
    }
    reportLeftOut(collection)
    try collection.damaged.report()
  }

  /// A variable has room for one value.
  private func reportLeftOut(_ collection: Collection) {
    guard format == .env else { return }
    for item in collection.contents.items where item.otpauth != nil {
      let path = "\(item.path)/\(ItemSecrets.otpauthName)".escapedForTerminal
      StandardError.write("keyhole: \(path): env has no place for it; it was left out\n")
    }
  }

  private func write(_ collection: Collection, _ passphrase: consuming SecretBytes?) throws {
    guard let output else { return try write(collection, passphrase, StandardStream.output.number) }
    var file = try OutputFile(output)
    try write(collection, passphrase, file.descriptor)
    try file.finish()
  }

  private func write(
    _ collection: Collection, _ passphrase: consuming SecretBytes?, _ descriptor: Int32
  ) throws {
    do throws(FormatError) {
      let file = try Self.file(descriptor, passphrase)
      var writer = ExportWriter(format, propertyLists: PropertyLists(), paths: TreePaths())
      writer.prefixesService = prefix
      try writer.write(collection.contents, to: file.sink)
      try file.finish()
    } catch {
      throw Failure(nil, error.reason)
    }
  }
}

extension ExportCommand {
  private static func file(
    _ descriptor: Int32, _ passphrase: borrowing SecretBytes?
  ) throws(FormatError) -> ExportFile {
    switch passphrase {
    case .some(let passphrase): try ExportFile(descriptor, sealedTo: passphrase)
    case .none: try ExportFile(descriptor)
    }
  }

  /// The paths of secrets that can't be read.
  private final class DamagedSecrets {
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
}

extension ExportFormat: ExpressibleByArgument {}

extension ExportCommand {
  /// The settings and items at the paths, each once.
  private struct Collection {
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
}

extension TreePath {
  fileprivate var itemClass: ItemClass? { components.count > 1 ? ItemClass(rawValue: components[1]) : nil }
}

extension ExportCommand {
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
}

extension TreeSession {
  fileprivate func secret(at path: TreePath, _ permit: Permit?) throws(StoreError) -> SecretBytes {
    let handle = try tree.open(root(path), .read, by: caller, permit)
    defer { handle.close() }
    var secret: SecretBytes?
    try unsafe handle.read(at: 0, count: .max) { bytes in
      // Without memory it stays nil.
      secret = try? unsafe SecretBytes(copying: bytes)
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

/// Passphrases of exports: asked for on a terminal, else lines of standard input.
enum Passphrases {
  /// Typed twice by a person.
  static func new() throws -> SecretBytes {
    guard SecretInput.isTyped else { return try checked(SecretInput.readLine()) }
    let first = try SecretInput.ask("Passphrase for the export: ")
    let second = try SecretInput.ask("The same again: ")
    guard first == second else { throw Failure(nil, "the two passphrases differ; nothing was written") }
    return try checked(first)
  }

  static func present() throws -> SecretBytes {
    guard SecretInput.isTyped else { return try checked(SecretInput.readLine()) }
    return try checked(SecretInput.ask("Passphrase of the export: "))
  }

  private static func checked(_ passphrase: consuming SecretBytes) throws -> SecretBytes {
    guard !passphrase.isEmpty else {
      throw Failure(nil, "the passphrase is empty; --plain writes secrets without one")
    }
    return passphrase
  }
}
