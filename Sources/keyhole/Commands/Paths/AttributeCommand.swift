import ArgumentParser
import Model
import Prompting
import Service
import Store
import Tree

struct AttributeCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "attr", abstract: "List, read, set or remove attributes of a key or an item.",
    discussion: """
      Attributes have the names that getfattr shows; the leading `user.` may be left out. Without NAME each is printed \
      with its value, on a terminal in columns, else with a tab between; a line feed in a value is shown as \\n, and \
      bytes that are not text as 0s and base64.
      """)

  @Flag(help: "Remove the attribute.")
  var remove = false

  @Flag(help: "A JSON array of objects: name and value, or base64 where the value is not text.")
  var json = false

  @OptionGroup var quiet: QuietOption

  @Argument(help: "A path of the tree or of a mount, or SERVICE/ACCOUNT.", completion: .treePath)
  var path: String

  @Argument(
    help: "The attribute, such as keyhole.type or comment; without it, all are listed.",
    completion: .attributeName)
  var name: String?

  @Argument(help: "The new value; without it, the attribute is printed.", completion: .attributeValue)
  var value: String?

  func validate() throws {
    if remove, name == nil { throw ValidationError("--remove needs the attribute's name") }
    if json, name != nil { throw ValidationError("--json lists all attributes; it takes no name") }
    if remove, value != nil { throw ValidationError("--remove takes no value") }
  }

  func run() throws {
    quiet.apply()
    let opened = try OpenedPath(path, .items)
    let (path, session) = (opened.path, opened.session)
    let full = name.map { $0.hasPrefix("user.") ? $0 : "user." + $0 }
    // Rules for a service come before the secrets that they are to guard.
    let isOfRules = full == Self.programs && (value != nil || remove)
    let present = try isOfRules ? session.existingNode(at: path) : nil
    let new = try isOfRules && present == nil ? session.ruleFolder(at: path) : nil
    let node = try present ?? new ?? session.storedNode(at: path)
    // The name may be a misspelt one.
    if new != nil, !remove {
      StandardError.note(
        "\(path.string.escapedForTerminal): nothing is there yet; the rules hold for what is stored there")
    }
    guard let full else { return try list(node, path, session) }
    try session.attempt(path) { () throws(StoreError) in
      if remove {
        let permit = try session.tree.permission(toSet: full, to: nil, of: node, by: .current)?.fetch()
        return try session.tree.removeAttribute(full, of: node, permit)
      }
      if let value { return try set(full, value, node, session) }
      let bytes = try session.tree.attribute(full, of: node)
      StandardOutput.write((bytes + [0x0A]).span)
    }
    // Where nothing was written, no rule is there that could not be changed.
    if full == Self.programs, !remove, let value { RuleChange.warn(of: value, in: session) }
  }

  private static let programs = "user.keyhole.programs"

  private func list(_ node: Node, _ path: TreePath, _ session: TreeSession) throws {
    let attributes = try session.attempt(path) { () throws(StoreError) in
      let tree = session.tree
      let names = try tree.attributeNames(of: node) + tree.computedAttributeNames(of: node)
      return try names.sorted().map { (name) throws(StoreError) in
        (name, try session.tree.attribute(name, of: node))
      }
    }
    guard !json else { return Self.printJSON(attributes) }
    var columns = Columns()
    for (name, value) in attributes {
      columns.add([
        Columns.Field(text: name.forStandardOutput), Columns.Field(text: Self.shown(value), style: .dim),
      ])
    }
    columns.write()
  }

  /// One line; like getfattr(1) with base64 for what is no text.
  private static func shown(_ value: [UInt8]) -> String {
    guard let text = String(validating: value, as: UTF8.self) else {
      return "0s" + Base64Encoding.text(of: value)
    }
    return text.replacing("\\", with: "\\\\").replacing("\n", with: "\\n").forStandardOutput
  }

  private static func printJSON(_ attributes: [(String, [UInt8])]) {
    var list = JSONList()
    for (name, value) in attributes {
      let text = String(validating: value, as: UTF8.self)
      list.add([
        ("name", name.quotedAsJSON),
        text.map { ("value", $0.quotedAsJSON) } ?? ("base64", "\"\(Base64Encoding.text(of: value))\""),
      ])
    }
    list.end()
  }

  private func set(
    _ name: String, _ value: String, _ node: Node, _ session: TreeSession
  ) throws(StoreError) {
    let (tree, value) = (session.tree, Array(value.utf8))
    let permit = try tree.permission(toSet: name, to: value, of: node, by: .current)?.fetch()
    try tree.setAttribute(name, to: value, of: node, if: .always, by: .current, permit)
    if name == Self.programs, RuleWarning.allowsKeyhole(String(decoding: value, as: UTF8.self)) {
      StandardError.write("keyhole: \(RuleWarning.text)\n")
    }
  }
}
