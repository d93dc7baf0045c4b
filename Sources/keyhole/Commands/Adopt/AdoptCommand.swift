import ArgumentParser
import Model
import Platform
import Prompting
import SecretMemory
import Service
import ViewFormats

struct AdoptCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "adopt",
    abstract: "Move the secrets of a file into the keychain, and put a link in its place.",
    discussion: """
      Without a file, those of the known places that have secrets in plain text are listed: .env and .npmrc of this folder, \
      ~/.netrc, ~/.npmrc, ~/.pgpass, ~/.aws/credentials, ~/.docker/config.json, gh's hosts.yml, cargo's credentials, and \
      keys of ssh without a passphrase.

      A file whose format is known becomes a view, any other one an item. The values are stored and read back through the mount, \
      then the link takes the file's name in one step; the file stays as FILE.before-keyhole until it is confirmed that it is \
      to be overwritten. While nothing is mounted, programs find a link that leads nowhere. One that saves by replacing its file \
      replaces the link: `keyhole doctor` names it then, and `keyhole view --take-in FILE` takes over what it wrote.
      """)

  @Argument(help: "The files.", completion: .file())
  var files: [String] = []

  @Option(
    help:
      "The reader of an environment file: portable (all of them), compose, docker, node, python, sh or systemd.",
    completion: .list(ViewMaker.dialects))
  var dialect: String?

  @Flag(help: "Do not ask before the values are stored.")
  var yes = false

  @Flag(help: "Do not ask before the old file is overwritten.")
  var erase = false

  @Flag(help: "Write the files again, with the values that the keychain has now. The items stay.")
  var undo = false

  func run() throws {
    allowUnlockedMemoryWithoutSwap()
    guard !undo || !files.isEmpty, !undo || !erase && dialect == nil else {
      throw UsageError(message: "--undo takes files, and no other option but --yes")
    }
    if files.isEmpty { return try list() }
    for file in files { try undo ? takeBack(file) : adopt(file) }
  }

  private func list() throws {
    let places = try StoragePaths.ofMount()
    let found = PlainSecrets.find(home: places.home, folder: try Files.realPath("."))
    for finding in found {
      StandardOutput.print(
        columns: finding.path, finding.count == 1 ? "1 secret" : "\(finding.count) secrets")
    }
  }

  private func chosenDialect() throws -> EnvDialect {
    guard let dialect else { return .portable }
    guard let known = EnvDialect(rawValue: dialect) else {
      throw UsageError(message: "a dialect is one of \(ViewMaker.dialects.joined(separator: ", "))")
    }
    return known
  }

  private func adopt(_ file: String) throws {
    let adoption = try Adoption(file, chosenDialect())
    let values = adoption.count.map { $0 == 1 ? "1 value" : "\($0) values" } ?? "all of it"
    let plan = "\(file): \(values) to \(adoption.target), and a link in its place"
    guard try yes || isWanted("\(plan)? (y/N) ", "nothing was changed; --yes does it without a question")
    else {
      throw Failure(file, "nothing was changed", .refused)
    }
    try adoption.store()
    StandardOutput.print(columns: file, adoption.target)
    if !erase { StandardError.write(Self.warning(adoption.remains)) }
    guard erase || StandardStream.input.isTerminal else {
      return StandardError.write("`shred -u \(adoption.remains.quotedForShell)` overwrites it\n")
    }
    guard try erase || isWanted("Overwrite it with zeros, and remove it? (y/N) ", "") else { return }
    try adoption.erase()
  }

  private static func warning(_ file: String) -> String {
    """
    The old file is \(file.escapedForTerminal). Overwriting it helps where a disk writes in place. An SSD, a file system that
    copies on write, snapshots and backups keep what was there: replace a secret that matters by a new one.

    """
  }

  private func takeBack(_ file: String) throws {
    let undo = try AdoptionUndo(file)
    let question = "Write the secrets of \(undo.target) into \(file) in plain text? (y/N) "
    guard try yes || isWanted(question, "nothing was changed; --yes does it without a question") else {
      throw Failure(file, "nothing was changed", .refused)
    }
    try undo.run()
    StandardOutput.print(columns: file, "\(undo.target) stays")
  }

  private func isWanted(_ question: String, _ withoutTerminal: String) throws -> Bool {
    guard StandardStream.input.isTerminal else { throw UsageError(message: withoutTerminal) }
    StandardError.write(question.escapedForTerminal)
    let answer = readLine()?.lowercased() ?? ""
    return answer == "y" || answer == "yes"
  }
}
