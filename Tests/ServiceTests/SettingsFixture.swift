import Foundation
import KeychainSelection
import Model
import Platform
import Store
import TestSupport
import Tree

@testable import Service

/// The settings of a folder of property lists as files, as a command opens them and without a mount.
final class SettingsFixture {
  private let folder: TemporaryFolder
  private let places: StoragePaths
  private var tree: FileTree

  init() throws {
    folder = try TemporaryFolder()
    places = StoragePaths(
      home: folder.path, configuration: folder.path, vault: folder.path + "/v", state: folder.path + "/s",
      runtime: folder.path + "/r")
    tree = try Self.tree(places)
  }

  private static func tree(_ places: StoragePaths) throws -> FileTree {
    let stores = try Stores(places, keychain: KeychainConfiguration(choice: .none))
    return FileTree(settings: stores.settings, keychain: nil)
  }

  /// Reads everything from the files again, as another process would.
  func reopen() throws {
    tree = try Self.tree(places)
  }

  private func node(_ path: String) throws -> Node {
    try (["defaults"] + path.split(separator: "/").map(String.init)).reduce(tree.root) {
      try tree.child(of: $0, named: $1.utf8)
    }
  }

  private func split(_ path: String) throws -> (folder: Node, name: String) {
    let parts = path.split(separator: "/").map(String.init)
    return (try node(parts.dropLast().joined(separator: "/")), parts.last ?? "")
  }

  func makeSuite(_ name: String) throws {
    _ = try tree.makeDirectory(name.utf8, in: node(""))
  }

  /// The file of a suite, put there by another program.
  func replaceSuite(_ suite: String, with bytes: [UInt8]) throws {
    try Data(bytes).write(to: URL(filePath: "\(folder.path)/\(suite).plist"))
    tree.settings.refresh(ExactString(suite))
  }

  func writeSuite(_ suite: String, _ entries: String) throws {
    try replaceSuite(suite, with: Array(PropertyListText.xml("<dict>\(entries)</dict>").utf8))
  }

  func write(_ path: String, _ content: String) throws {
    try write(path, Array(content.utf8))
  }

  func write(_ path: String, _ content: [UInt8]) throws {
    let (folder, name) = try split(path)
    let handle = try tree.create(
      name.utf8, in: folder, [.write, .truncate], exclusive: false, by: .current)
    defer { handle.close() }
    try handle.write(content.span, at: 0, by: .current)
    try handle.flush(by: .current)
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

  func type(_ path: String) throws -> String {
    String(decoding: try tree.attribute("user.keyhole.type", of: node(path)), as: UTF8.self)
  }

  func setType(_ path: String, _ type: String) throws {
    try tree.setAttribute(
      "user.keyhole.type", to: Array(type.utf8), of: node(path), if: .always, by: .current)
  }

  func remove(_ path: String) throws {
    let (folder, name) = try split(path)
    try tree.remove(name.utf8, in: folder)
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

func withSettings(_ body: (SettingsFixture) throws -> Void) throws {
  try body(SettingsFixture())
}
