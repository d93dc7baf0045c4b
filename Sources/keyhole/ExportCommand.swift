public import ArgumentParser
import Glibc
import Model
import SecretMemory
import Store
import Suites
public import Transfer
import Tree

struct ExportCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "export", abstract: "Write settings and secrets as one file.",
    discussion: """
      Without a path, everything. Where a secret is among it, the file is sealed under a passphrase that is \
      asked for, or read as the first line of standard input; --plain leaves it readable by everybody. Of one \
      suite, `plist` is what `defaults export` of macOS writes.
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

  func run() throws {
    let wanted = paths.isEmpty ? [TreePath("")] : paths.map(TreePath.init)
    let needsKeychain = wanted.first { $0.needsKeychain } ?? wanted[0]
    let session = try TreeSession(for: needsKeychain)
    try session.requireTrust()
    var collection = Collection(session: session)
    for path in wanted { try collection.add(path) }
    try session.requireTrust()
    let isSealed = !collection.contents.items.isEmpty && !plain
    if !isSealed { return try write(collection, nil) }
    try write(collection, try Passphrases.new())
  }

  private func write(_ collection: Collection, _ passphrase: consuming SecretBytes?) throws {
    guard let output else { return try write(collection, passphrase, STDOUT_FILENO) }
    let temporary = "\(output).\(getpid()).part"
    // SAFETY: a variadic call with its one argument.
    let descriptor = unsafe open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
    guard descriptor >= 0 else { throw Failure(output, "it can't be written: \(systemMessage(errno))") }
    defer { close(descriptor) }
    do {
      try write(collection, passphrase, descriptor)
      guard fsync(descriptor) == 0 || errno == EINVAL, unsafe rename(temporary, output) == 0 else {
        throw Failure(output, "it can't be written: \(systemMessage(errno))")
      }
    } catch {
      unsafe unlink(temporary)
      throw error
    }
  }

  private func write(
    _ collection: Collection, _ passphrase: consuming SecretBytes?, _ descriptor: Int32
  ) throws {
    do throws(TransferError) {
      let sink = try Sink(descriptor, passphrase: passphrase)
      try format.write(
        collection.contents, codec: collection.session.tree.settings.codec, propertyLists: PropertyLists(),
        to: sink)
    } catch {
      throw Failure(nil, error.reason)
    }
  }
}

extension ExportFormat: ExpressibleByArgument {}

extension ExportCommand {
  /// What the paths lead to, each thing once.
  private struct Collection {
    let session: TreeSession
    var contents = ExportContents()
    private var seen: Set<String> = []

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
      let secret = { [session] () throws(TransferError) in try session.secret(at: path.appending("value")) }
      contents.items.append(
        ExportItem(itemClass, path: path.string, attributes: attributes, modified: modified, secret: secret))
    }
  }
}

extension TreePath {
  fileprivate var itemClass: ItemClass? { components.count > 1 ? ItemClass(rawValue: components[1]) : nil }
}

extension TreeSession {
  fileprivate func secret(at path: TreePath) throws(TransferError) -> SecretBytes {
    do {
      var secret = try SecretBytes()
      var failure: (any Error)?
      try unsafe read(path) { bytes in
        do { try unsafe secret.append(bytes) } catch { failure = error }
      }
      if let failure { throw failure }
      return secret
    } catch let failure as Failure {
      throw TransferError("\(failure.subject ?? path.string): \(failure.reason)")
    } catch {
      throw TransferError("\(path.string): there is not enough locked memory")
    }
  }
}

/// Passphrases of exports: asked for on a terminal, else lines of standard input.
enum Passphrases {
  /// Typed twice by a person.
  static func new() throws -> SecretBytes {
    guard isatty(STDIN_FILENO) == 1 else { return try checked(SecretInput.readLine()) }
    let first = try SecretInput.ask("Passphrase for the export: ")
    let second = try SecretInput.ask("The same again: ")
    guard first == second else { throw Failure(nil, "the two passphrases differ; nothing was written") }
    return try checked(first)
  }

  static func present() throws -> SecretBytes {
    guard isatty(STDIN_FILENO) == 1 else { return try checked(SecretInput.readLine()) }
    return try checked(SecretInput.ask("Passphrase of the export: "))
  }

  private static func checked(_ passphrase: consuming SecretBytes) throws -> SecretBytes {
    guard !passphrase.isEmpty else {
      throw Failure(nil, "the passphrase is empty; --plain writes secrets without one")
    }
    return passphrase
  }
}
