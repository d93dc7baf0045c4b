import ArgumentParser
import Model
import Prompting
import Service
import Store
import Tree

struct AttributeCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "attr", abstract: "List, read, set or remove attributes of a key or an item.",
    discussion: "Attributes have the names that getfattr shows; the leading `user.` may be left out.")

  @Flag(help: "Remove the attribute.")
  var remove = false

  @Argument(help: "A path of the tree.", completion: .treePath)
  var path: String

  @Argument(
    help: "The attribute, such as keyhole.type or comment; without it, all are listed.",
    completion: .attributeName)
  var name: String?

  @Argument(help: "The new value; without it, the attribute is printed.", completion: .attributeValue)
  var value: String?

  func validate() throws {
    if remove, name == nil { throw ValidationError("--remove needs the attribute's name") }
    if remove, value != nil { throw ValidationError("--remove takes no value") }
  }

  func run() throws {
    let path = TreePath(path)
    let session = try TreeSession(for: path)
    let node = try session.node(at: path)
    guard let name else { return try list(node, path, session) }
    let full = name.hasPrefix("user.") ? name : "user." + name
    try session.attempt(path) { () throws(StoreError) in
      if remove {
        let permit = try session.tree.permission(toSet: full, to: nil, of: node, by: .current)?.fetch()
        return try session.tree.removeAttribute(full, of: node, permit)
      }
      if let value { return try set(full, value, node, session) }
      let bytes = try session.tree.attribute(full, of: node)
      StandardOutput.write((bytes + [0x0A]).span)
    }
  }

  private func list(_ node: Node, _ path: TreePath, _ session: TreeSession) throws {
    let names = try session.attempt(path) { () throws(StoreError) in
      try session.tree.attributeNames(of: node)
    }
    StandardOutput.write(names.map { $0.forStandardOutput + "\n" }.joined())
  }

  private func set(
    _ name: String, _ value: String, _ node: Node, _ session: TreeSession
  ) throws(StoreError) {
    let (tree, value) = (session.tree, Array(value.utf8))
    let permit = try tree.permission(toSet: name, to: value, of: node, by: .current)?.fetch()
    try tree.setAttribute(name, to: value, of: node, if: .always, by: .current, permit)
    if name == "user.keyhole.programs", RuleWarning.allowsKeyhole(String(decoding: value, as: UTF8.self)) {
      StandardError.write("keyhole: \(RuleWarning.text)\n")
    }
  }
}
