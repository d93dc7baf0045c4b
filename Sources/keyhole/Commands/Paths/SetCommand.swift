import ArgumentParser
import Model
import Prompting
import SecretMemory
import Service
import Tree

struct SetCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "set", abstract: "Set a setting or a secret, and make the folders on the way.",
    discussion: """
      A key that is there keeps its type; a new one takes it from the value. A secret is read from \
      standard input, or asked for twice on the terminal, unseen; it is never an argument, which others could read. \
      An item stands for its secret: keychain/generic/SERVICE/ACCOUNT makes the item, or replaces its secret. \
      SERVICE/ACCOUNT alone is enough for an item that is there.

      Without input nothing is stored: --empty stores an empty value, and for a setting the argument '' does.

      A value may begin with a dash; one that begins with two stands behind `--`.
      """)

  @OptionGroup var quiet: QuietOption

  @Argument(
    help: "A key or an item, such as keychain/generic/my.service/peter.", completion: .treePath)
  var path: String

  @Argument(help: "The new value of a setting; without it, standard input is read.")
  var value: String?

  @Option(
    help: """
      Conditions for reading the secret: userPresence, biometryAny, biometryCurrentSet, \
      devicePasscode, applicationPassword, joined by |, with `or` or `and` among them.
      """, completion: .accessFlags)
  var access: String?

  @Flag(
    help:
      "Have the vault seal the secret before a Secret Service gets it; what is in a vault is sealed anyway.")
  var sealed = false

  @Flag(help: "Store an empty value, and read no input.")
  var empty = false

  func validate() throws {
    if empty, value != nil { throw ValidationError("--empty takes no value") }
  }

  func run() throws {
    quiet.apply()
    if access == nil, !sealed, let setting = try MountedSetting(path), setting.isWritable {
      let content = try value.map { Array($0.utf8) } ?? settingContent(TreePath(path))
      if !setting.write(content) { try store(content) }
      return
    }
    allowUnlockedMemoryWithoutSwap()
    let opened = try OpenedPath(path, .itemsUnlessKey, .one)
    let (path, session) = (opened.path.ofValue, opened.session)
    try check(path)
    try session.requireStored(path)
    if let value {
      return try session.write(Array(value.utf8).span, to: path)
    }
    try session.unlock(toStoreAt: path)
    guard path.isSecret else {
      let content = try settingContent(path)
      return try session.write(content.span, to: path)
    }
    let input = try empty ? SecretBytes() : Self.secret(for: path)
    try require(!input.isEmpty, path)
    // Not before the secret is there: what fails changes nothing.
    if let access { try session.setAttribute("access", to: access, ofItemAt: path) }
    if sealed { try session.setAttribute("sealed", to: "true", ofItemAt: path) }
    try session.write(input.span, to: path)
  }

  /// A setting may be larger than the locked memory of a user.
  private func settingContent(_ path: TreePath) throws -> [UInt8] {
    let input = empty ? [] : try SettingInput.read(limit: FileTree.settingLimit)
    try require(!input.isEmpty, path)
    return input
  }

  /// Stores a content that a mount has not taken.
  private func store(_ content: [UInt8]) throws {
    allowUnlockedMemoryWithoutSwap()
    let opened = try OpenedPath(path, .itemsUnlessKey, .one)
    try opened.session.requireStored(opened.path)
    try opened.session.write(content.span, to: opened.path)
  }

  private func check(_ path: TreePath) throws {
    if path.components.count == 3, let kind = ["generic": "SERVICE", "internet": "SERVER"][path.parent.name],
      path.components.first == "keychain"
    {
      throw Failure(
        path.string, "the account is missing: an item is keychain/\(path.parent.name)/\(kind)/ACCOUNT")
    }
    if sealed, !path.isSecret { throw UsageError(message: "--sealed is for secrets") }
    if access != nil, !path.isSecret { throw UsageError(message: "--access is for secrets") }
    if value != nil, path.isSecret {
      throw UsageError(
        message: "a secret is taken from standard input only: arguments can be read by every process")
    }
  }

  /// A command before the pipe that has failed must not replace a value by nothing.
  private func require(_ hasInput: Bool, _ path: TreePath) throws {
    guard empty || hasInput else {
      throw Failure(path.string, "there was no input, so nothing was stored; `--empty` stores an empty value")
    }
  }

  /// Typed twice by a person, so that a typing error does not replace a secret.
  private static func secret(for path: TreePath) throws -> SecretBytes {
    let limit = FileTree.secretLimit + 1
    let first = try SecretInput.read(prompt: "Value of \(path.string): ", hidden: true, limit: limit)
    guard SecretInput.isTyped else { return first }
    let second = try SecretInput.ask("The same again: ", limit: limit)
    guard first == second else {
      throw Failure(path.string, "the two values differ; nothing was stored")
    }
    return first
  }
}
