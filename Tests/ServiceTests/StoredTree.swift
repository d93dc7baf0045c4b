import Foundation
import KeychainSelection
import Model
import Platform
import Store
import TestSupport
import Tree

@testable import Service

/// A tree over a folder of property lists and a vault, as a command opens them and without a mount, used by paths.
final class StoredTree {
  private let folder: TemporaryFolder
  private let places: StoragePaths
  private let keychain: KeychainChoice
  /// The directory that paths are relative to.
  private let directory: [String]
  private(set) var tree: FileTree

  init(in directory: String = "", keychain: KeychainChoice = .vault) throws {
    folder = try TemporaryFolder()
    places = StoragePaths(
      home: folder.path, configuration: folder.path, vault: folder.path + "/v", state: folder.path + "/s",
      runtime: folder.path + "/r")
    self.keychain = keychain
    self.directory = directory.split(separator: "/").map(String.init)
    tree = try Self.tree(places, keychain)
  }

  private static func tree(_ places: StoragePaths, _ keychain: KeychainChoice) throws -> FileTree {
    let stores = try Stores(places, keychain: KeychainConfiguration(choice: keychain))
    return FileTree(settings: stores.settings, keychain: stores.keychain)
  }

  /// Reads everything from the files again, as another process would.
  func reopen() throws {
    tree = FileTree(
      settings: try Stores(places, keychain: KeychainConfiguration(choice: .none)).settings, keychain: nil)
    tree = try Self.tree(places, keychain)
  }

  // MARK: Property lists, as other programs write them

  /// The names of the suites' files.
  var suiteFiles: [String] { folder.names.filter { $0.hasSuffix(".plist") } }

  /// The file of a suite, put there by another program.
  func replaceSuite(_ suite: String, with bytes: [UInt8]) throws {
    try Data(bytes).write(to: URL(filePath: "\(folder.path)/\(suite).plist"))
    tree.settings.refresh(ExactString(suite))
  }

  func writeSuite(_ suite: String, _ entries: String) throws {
    try replaceSuite(suite, with: Array(PropertyListText.xml("<dict>\(entries)</dict>").utf8))
  }
}

// MARK: - By path

extension StoredTree {
  func node(_ path: String) throws -> Node {
    try (directory + parts(path)).reduce(tree.root) {
      try tree.child(of: $0, named: $1.utf8)
    }
  }

  /// A slash and a mark behind it are one Character.
  private func parts(_ path: String) -> [String] {
    path.unicodeScalars.split(separator: "/").map { String($0) }
  }

  private func split(_ path: String) throws -> (folder: Node, name: String) {
    let parts = parts(path)
    return (try node(parts.dropLast().joined(separator: "/")), parts.last ?? "")
  }

  func exists(_ path: String) -> Bool { (try? node(path)) != nil }

  /// `ls`, ordered by bytes.
  func list(_ path: String) throws -> [String] {
    try tree.list(node(path)).map { ExactString($0.name) }.sorted().map(\.string)
  }

  /// `mkdir -p`.
  func makeDirectories(_ path: String) throws {
    var done = ""
    for part in parts(path) {
      let parent = try node(done)
      done += "/\(part)"
      if !exists(done) { _ = try tree.makeDirectory(part.utf8, in: parent) }
    }
  }

  func write(_ path: String, _ content: String) throws { try write(path, Array(content.utf8)) }

  func write(_ path: String, _ content: [UInt8]) throws {
    let (folder, name) = try split(path)
    let handle = try tree.create(name.utf8, in: folder, [.write, .truncate], exclusive: false, by: .current)
    defer { handle.close() }
    if !content.isEmpty { try handle.write(content.span, at: 0, by: .current) }
    try handle.flush(by: .current)
  }

  /// An item with a secret; the path is that of its directory.
  func makeItem(_ path: String, _ secret: String) throws {
    try makeDirectories(path)
    try write(path + "/value", secret)
  }

  /// A new key with a type and a content, as tar makes it.
  func create(_ path: String, _ type: String, _ content: String) throws {
    let (folder, name) = try split(path)
    let handle = try tree.create(name.utf8, in: folder, .write, exclusive: true, by: .current)
    defer { handle.close() }
    try setType(path, type)
    try handle.write(Array(content.utf8).span, at: 0, by: .current)
    try handle.flush(by: .current)
  }

  func bytes(_ path: String) throws -> [UInt8] {
    let handle = try tree.open(node(path), .read, by: .current)
    defer { handle.close() }
    return try handle.read(at: 0, count: 32 << 20) { $0.array }
  }

  func text(_ path: String) throws -> String { String(decoding: try bytes(path), as: UTF8.self) }

  func size(_ path: String) throws -> Int { Int(try tree.status(of: node(path), for: .current).size) }

  func modified(_ path: String) throws -> Timestamp {
    try tree.status(of: node(path), for: .current).modified
  }

  func setModified(_ path: String, seconds: Int64) throws {
    try tree.setModified(Timestamp(seconds: seconds), of: node(path))
  }

  func attribute(_ name: String, _ path: String) throws -> String {
    String(decoding: try tree.attribute("user." + name, of: node(path)), as: UTF8.self)
  }

  func attributeNames(_ path: String) throws -> [String] { try tree.attributeNames(of: node(path)) }

  func setAttribute(_ name: String, _ value: String, _ path: String) throws {
    try tree.setAttribute("user." + name, to: Array(value.utf8), of: node(path), if: .always, by: .current)
  }

  func type(_ path: String) throws -> String { try attribute("keyhole.type", path) }

  func setType(_ path: String, _ type: String) throws { try setAttribute("keyhole.type", type, path) }

  func rename(_ old: String, _ new: String) throws {
    let (source, target) = (try split(old), try split(new))
    try tree.rename(
      source.name.utf8, in: source.folder, to: target.name.utf8, in: target.folder, replacing: true,
      by: .current)
  }

  func remove(_ path: String) throws {
    let (folder, name) = try split(path)
    try tree.remove(name.utf8, in: folder)
  }

  func removeDirectory(_ path: String) throws {
    let (folder, name) = try split(path)
    try tree.removeDirectory(name.utf8, in: folder)
  }

  /// The errno(3) that a program would see at a mount; nil: none.
  func failure(_ body: () throws -> Void) -> Errno? {
    do {
      try body()
      return nil
    } catch {
      return (error as? StoreError)?.errno ?? Errno(rawValue: -1)
    }
  }
}

/// Runs `body` with the settings alone.
func withSettings(_ body: (StoredTree) throws -> Void) throws {
  try body(StoredTree(in: "defaults", keychain: .none))
}
