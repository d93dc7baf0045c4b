import ArgumentParser
import KeychainSelection
import Model
import Prompting
import Service
import Store
import Tree

struct ListCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "ls", abstract: "List a folder: names as they stand in paths, one a line.")

  @Flag(name: .short, help: "Type, size in bytes, time of the last change, and name, a tab between them.")
  var long = false

  @Argument(help: "A path of the tree; without it, the top.", completion: .treePath)
  var path = ""

  func run() throws {
    let path = TreePath(path)
    let session =
      try path.components.isEmpty ? TreeSession(atTopOf: path) { $0.report() } : TreeSession(for: path)
    let node = try session.node(at: path)
    guard node.isDirectory else { return try show([(path.name, node)], path, session) }
    let entries = try session.attempt(path) { () throws(StoreError) in try session.tree.list(node) }
    let named = entries.map { ($0.name, session.tree.node(of: $0)) }
    try show(named.sorted { ExactString($0.0) < ExactString($1.0) }, path, session)
    if path.needsKeychain, path.components.count <= 2, let hidden = session.stores.hiddenItems() {
      StandardError.write("keyhole: note: \(hidden.description)\n")
    }
  }

  private func show(_ files: [(String, Node)], _ path: TreePath, _ session: TreeSession) throws {
    guard long else { return StandardOutput.write(files.map { $0.0.forStandardOutput + "\n" }.joined()) }
    for (name, node) in files {
      let status = try session.attempt(path) { () throws(StoreError) in
        try session.tree.status(of: node, for: .current)
      }
      let type = session.type(of: node, status)
      StandardOutput.print("\(type)\t\(status.size)\t\(status.modified.iso8601)\t\(name.forStandardOutput)")
    }
  }
}

extension TreeSession {
  /// `directory`, the type of a setting, or `secret`.
  fileprivate func type(of node: Node, _ status: NodeStatus) -> String {
    if status.kind == .directory { return "directory" }
    if node.isSecret { return "secret" }
    guard let type = try? tree.attribute("user.keyhole.type", of: node) else { return "file" }
    return String(decoding: type, as: UTF8.self)
  }
}
