import Model
import Platform
import Store
import StoreConformance
import Testing
import Tree

/// A tree on stores in memory, used by paths as a program uses a mount.
struct TreeFixture {
  let suites = MemorySuites()
  let items = MemoryKeychain()
  let tree: FileTree

  init(_ options: FileTree.Options = FileTree.Options()) {
    tree = FileTree(
      settings: SettingsStore(engine: suites), keychain: KeychainStore(engine: items), options: options)
  }

  /// A tree with the suite `s`, which holds `values`.
  init(_ values: [ExactString: SettingValue]) {
    self.init()
    suites.replace("s", with: values)
  }

  func node(_ path: String) throws -> Node {
    try path.split(separator: "/").reduce(tree.root) { try tree.child(of: $0, named: $1.utf8) }
  }

  func parent(of path: String) throws -> (node: Node, name: String) {
    let parts = path.split(separator: "/")
    return (try node(parts.dropLast().joined(separator: "/")), parts.last.map(String.init) ?? "")
  }

  func exists(_ path: String) -> Bool {
    (try? node(path)) != nil
  }

  /// `ls -A`, ordered by bytes.
  func list(_ path: String = "") throws -> [String] {
    try tree.list(node(path)).map { ExactString($0.name) }.sorted().map(\.string)
  }

  /// The numbers of a directory's files, as readdir(3) returns them.
  func numbers(_ path: String) throws -> [String: UInt64] {
    let entries = try tree.list(node(path))
    return Dictionary(uniqueKeysWithValues: entries.map { ($0.name, tree.number(of: $0)) })
  }

  /// LOOKUP: the kernel has one more reference to the node.
  func lookUp(_ path: String) throws -> Node { tree.countLookup(of: try node(path)) }

  /// FORGET of one lookup. Returns whether it was the last.
  func forget(_ node: Node) -> Bool {
    var isForgotten = false
    tree.forget(node.number, lookups: 1) { isForgotten = true }
    return isForgotten
  }

  func status(_ path: String, for caller: Caller = .current) throws -> NodeStatus {
    try tree.status(of: node(path), for: caller)
  }

  /// The stored value, independent of the tree.
  func stored(_ key: ExactString, in suite: ExactString = "s") throws -> SettingValue? {
    try suites.read(suite)?.settings[key]?.value
  }

  /// The one item of the keychain; nil: there are none or several.
  func onlyItem() throws -> Item? {
    let all = try items.items()
    return all.count == 1 ? all.first : nil
  }
}

extension TreeFixture {
  /// open(2).
  func open(_ path: String, _ mode: OpenMode, by caller: Caller = .current) throws -> Handle {
    try tree.open(node(path), mode, by: caller)
  }

  /// open(2) with O_CREAT, and with O_EXCL where `exclusive`.
  func create(
    _ path: String, _ mode: OpenMode = [.write, .truncate], exclusive: Bool = false,
    by caller: Caller = .current
  ) throws -> Handle {
    let (parent, name) = try parent(of: path)
    return try tree.create(name.utf8, in: parent, mode, exclusive: exclusive, by: caller)
  }

  /// `printf %s text > path`.
  func write(_ path: String, _ text: String) throws {
    let handle = try create(path)
    defer { handle.close() }
    try handle.write(text, at: 0)
    try handle.flush(by: .current)
  }

  /// `printf %s text >> path`.
  func append(_ path: String, _ text: String) throws {
    let handle = try create(path, .write)
    defer { handle.close() }
    try handle.write(text, at: nil)
    try handle.flush(by: .current)
  }

  /// `cat path`.
  func read(_ path: String) throws -> String {
    let handle = try open(path, .read)
    defer { handle.close() }
    return try handle.text()
  }

  /// `mkdir -p path`.
  func makeDirectories(_ path: String) throws {
    var done = ""
    for part in path.split(separator: "/") {
      let directory = try node(done)
      done += "/" + part
      if !exists(done) { _ = try tree.makeDirectory(part.utf8, in: directory) }
    }
  }

  /// An item with the secret `text`; the path is that of its directory.
  func makeItem(_ path: String, _ text: String = "secret") throws {
    try makeDirectories(path)
    try write(path + "/value", text)
  }

  func rename(
    _ old: String, _ new: String, replacing: Bool = true, by caller: Caller = .current
  ) throws {
    let (source, target) = (try parent(of: old), try parent(of: new))
    try tree.rename(
      source.name.utf8, in: source.node, to: target.name.utf8, in: target.node, replacing: replacing,
      by: caller)
  }

  func remove(_ path: String) throws {
    let (parent, name) = try parent(of: path)
    try tree.remove(name.utf8, in: parent)
  }

  func removeDirectory(_ path: String) throws {
    let (parent, name) = try parent(of: path)
    try tree.removeDirectory(name.utf8, in: parent)
  }

  func attribute(_ name: String, _ path: String) throws -> String {
    String(decoding: try tree.attribute(name, of: node(path)), as: UTF8.self)
  }

  func setAttribute(
    _ name: String, _ value: String, _ path: String, if condition: AttributeCondition = .always
  ) throws {
    try tree.setAttribute(name, to: Array(value.utf8), of: node(path), if: condition, by: .current)
  }

  func removeAttribute(_ name: String, _ path: String) throws {
    try tree.removeAttribute(name, of: node(path))
  }
}

extension Handle {
  /// write(2); without an offset, with O_APPEND.
  func write(_ text: String, at offset: Int?, by caller: Caller = .current) throws {
    let bytes = Array(text.utf8)
    try write(bytes.span, at: offset, by: caller)
  }

  func bytes() throws -> [UInt8] {
    try read(at: 0, count: 32 << 20) { $0.array }
  }

  func text() throws -> String {
    String(decoding: try bytes(), as: UTF8.self)
  }

  /// close(2) of the only descriptor: the error that a program would see.
  func finish(by caller: Caller = .current) throws {
    defer { close() }
    try flush(by: caller)
  }
}

extension Caller {
  /// Another process than the tests'.
  static let other = Caller(thread: 1)
}

/// The errno(3) that a program would see; nil: none.
func errorNumber(_ body: () throws -> Void) -> Int32? {
  do {
    try body()
    return nil
  } catch {
    return (error as? StoreError)?.errno.rawValue ?? -1
  }
}
