import ArgumentParser
import Model
import Platform
import Prompting
import SecretMemory
import Service
import Tree

struct GetCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "get", abstract: "Print a setting or a secret, exactly as its file holds it.")

  @Argument(
    help: "A key or a value, such as defaults/com.example.app/volume.", completion: .treePath)
  var path: String

  func run() throws {
    allowUnlockedMemoryWithoutSwap()
    let path = TreePath(path)
    var chunk = try SecretBytes(pinnable: 16 * 1024)
    try TreeSession(for: path).read(path) { bytes in
      var start = 0
      while start < bytes.count {
        let piece = bytes.extracting(start..<min(bytes.count, start + chunk.count))
        var room = chunk.mutableSpan
        room.copy(piece, at: 0)
        StandardOutput.write(chunk.span.extracting(..<piece.count))
        start += piece.count
      }
    }
  }
}

struct SetCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "set", abstract: "Set a setting or a secret, and make the folders on the way.",
    discussion: """
      A key that is there keeps its type; a new one takes it from the value. A secret is read from \
      standard input, or asked for on the terminal; it is never an argument, which others could read.
      """)

  @Argument(
    help: "A key or a value, such as keychain/generic/my.service/peter/value.", completion: .treePath)
  var path: String

  @Argument(help: "The new value of a setting; without it, standard input is read.")
  var value: String?

  @Option(
    help: """
      Conditions for reading the secret: userPresence, biometryAny, biometryCurrentSet, \
      devicePasscode, applicationPassword, joined by |, with `or` or `and` among them.
      """)
  var access: String?

  @Flag(
    help:
      "Have the vault seal the secret before a Secret Service gets it; what is in a vault is sealed anyway.")
  var sealed = false

  func validate() throws {
    if sealed, !TreePath(path).isSecret { throw ValidationError("--sealed is for secrets") }
    if access != nil, !TreePath(path).isSecret { throw ValidationError("--access is for secrets") }
    if value != nil, TreePath(path).isSecret {
      throw ValidationError(
        "a secret is taken from standard input only: arguments can be read by every process")
    }
  }

  func run() throws {
    allowUnlockedMemoryWithoutSwap()
    let path = TreePath(path)
    let session = try TreeSession(for: path)
    try session.requireStored(path)
    if let value {
      return try session.write(Array(value.utf8).span, to: path)
    }
    if let access { try session.setAttribute("access", to: access, ofItemAt: path) }
    if sealed { try session.setAttribute("sealed", to: "true", ofItemAt: path) }
    guard path.isSecret else {
      // A setting may be larger than the locked memory of a user.
      let input = try SettingInput.read(limit: FileTree.settingLimit)
      return try session.write(input.span, to: path)
    }
    let input = try SecretInput.read(
      prompt: "Value of \(path.string): ", hidden: true, limit: FileTree.secretLimit + 1)
    try session.write(input.span, to: path)
  }
}

struct RemoveCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "rm", abstract: "Remove a key, a secret, or with -r a folder and all that is in it.")

  @Flag(name: .short, help: "Remove folders with everything in them.")
  var recursive = false

  @Argument(help: "A path of the tree.", completion: .treePath)
  var path: String

  func run() throws {
    let path = TreePath(path)
    guard !path.components.isEmpty else {
      throw Failure(nil, "this path is the top of the tree, which stays; nothing was removed")
    }
    let session = try TreeSession(for: path)
    let node = try session.node(at: path)
    guard node.isDirectory else { return try remove(path, session) }
    guard !node.isPermanent else { throw try refusal(of: node, path, session) }
    guard recursive else { throw Failure(path.string, "it is a folder; `keyhole rm -r` removes it") }
    try removeFolder(node, path, session)
  }

  /// Why a folder of the tree itself is not emptied: the path of one, or an unset variable in a script, would delete
  /// every setting or secret below it.
  private func refusal(of node: Node, _ path: TreePath, _ session: TreeSession) throws -> Failure {
    let names = try session.attempt(path) { () throws(StoreError) in
      try session.tree.list(node).map(\.name)
    }
    let shown = names.prefix(3).map { path.appending($0).string }.joined(separator: ", ")
    let more = names.count > 3 ? " and \(names.count - 3) more" : ""
    let content = names.isEmpty ? "it is empty" : "it holds \(shown)\(more); remove these by name"
    return Failure(path.string, "this folder always stays, and nothing was removed; \(content)")
  }

  private func removeFolder(_ node: Node, _ path: TreePath, _ session: TreeSession) throws {
    for entry in try session.attempt(path, { () throws(StoreError) in try session.tree.list(node) }) {
      let child = path.appending(entry.name)
      if entry.isDirectory {
        try removeFolder(session.tree.node(of: entry), child, session)
      } else {
        try remove(child, session)
      }
    }
    try removeEmpty(path, session)
  }

  private func remove(_ path: TreePath, _ session: TreeSession) throws {
    let folder = try session.node(at: path.parent)
    try session.attempt(path) { () throws(StoreError) in
      try session.tree.remove(path.name.utf8, in: folder)
    }
  }

  /// A service's folder is gone with its last item; here none was made to keep.
  private func removeEmpty(_ path: TreePath, _ session: TreeSession) throws {
    let folder = try session.node(at: path.parent)
    try session.attempt(path) { () throws(StoreError) in
      try session.tree.removeDirectory(path.name.utf8, in: folder)
    }
  }
}
