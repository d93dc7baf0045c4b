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

  func run() throws { try Self.print(path) }

  /// Does not always return.
  static func print(_ path: String) throws {
    allowUnlockedMemoryWithoutSwap()
    let path = TreePath(path)
    let session = try TreeSession(for: path)
    try write(path, of: session)
    session.endProcess()
  }

  private static func write(_ path: TreePath, of session: TreeSession) throws {
    var chunk = try SecretBytes(pinnable: 16 * 1024)
    try session.read(path) { bytes in
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
    try session.unlock(toStoreAt: path)
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

  @Flag(help: "Keep nothing of it: also its earlier versions are deleted.")
  var purge = false

  @Argument(help: "A path of the tree.", completion: .treePath)
  var path: String

  func run() throws {
    let path = TreePath(path)
    let session = try TreeSession(for: path)
    let isSaying = StandardStream.errors.isTerminal
    let notice = purge || isSaying ? RemovalNotice(session, path) : nil
    try session.remove(path, recursive ? .withContent : .fileOnly)
    if purge { return try notice?.purge() ?? () }
    if let line = notice?.line { StandardError.write("keyhole: note: \(line.escapedForTerminal)\n") }
  }
}
