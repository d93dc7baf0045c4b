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
      ~/.netrc, ~/.npmrc, ~/.pgpass, ~/.aws/credentials, ~/.docker/config.json, gh's hosts.yml, cargo's credentials, \
      settings of editors (VS Code, Cursor, Windsurf, Zed, Continue) with keys in them, and keys of ssh without a passphrase.

      A file whose format is known becomes a view, any other one an item. The values are stored and read back through the mount, \
      then the link takes the file's name in one step; the file stays as FILE.before-keyhole until it is confirmed that it is \
      to be overwritten. While nothing is mounted, programs find a link that leads nowhere. One that saves by replacing its file \
      (sed -i, git checkout, set_key of python-dotenv) replaces the link, which the question says for the file's format: `keyhole doctor` names it then, and `keyhole view --take-in FILE` takes over what it wrote.

      A run that was interrupted is named by `keyhole doctor`; the same command goes on where it ended.
      """)

  @Argument(help: "The files.", completion: .file())
  var files: [String] = []

  @Option(
    help:
      "The reader of an environment file: portable (all but docker), compose, docker, node, python, sh or systemd.",
    completion: .list(ViewMaker.dialects))
  var dialect: String?

  @Flag(help: "Do not ask before the values are stored.")
  var yes = false

  @Flag(help: "Do not ask before the old file is overwritten.")
  var erase = false

  @Flag(
    help:
      "Write the files again, with the values that the keychain has now. The view and the items go, unless they were changed since or are used elsewhere."
  )
  var undo = false

  @Flag(help: "Without a file: a JSON array of objects: path and secrets, their number.")
  var json = false

  @OptionGroup var quiet: QuietOption

  func validate() throws {
    if json, !files.isEmpty { throw ValidationError("--json is for the list, and goes without files") }
  }

  func run() throws {
    quiet.apply()
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
    guard !json else {
      var list = JSONList()
      for finding in found {
        list.add([("path", finding.path.quotedAsJSON), ("secrets", "\(finding.count)")])
      }
      return list.end()
    }
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
    if let rest = try AdoptionRest(file) { return try finish(rest, file) }
    let adoption = try Adoption(file, chosenDialect())
    let values = adoption.count.map { $0 == 1 ? "1 value" : "\($0) values" } ?? "all of it"
    let plan = "\(file): \(values) to \(adoption.target), and a link in its place"
    if !yes { StandardError.write(adoption.noteOfLink) }
    guard yes || isWanted("\(plan)") else { throw Self.declined(file) }
    try adoption.store()
    StandardOutput.print(columns: file, adoption.target)
    if let former = adoption.former {
      StandardError.note(
        "\(file) was adopted before: \(former) stays, with the values that it had; `keyhole rm \(former.quotedForShell)` removes it"
      )
    }
    if adoption.isInCommit {
      StandardError.note(
        "\(file): a commit of git has it, with the secrets of then, and keeps them: replace these by new ones"
      )
    }
    if isErasureWanted(adoption.remains) { try adoption.erase() }
  }

  private func finish(_ rest: AdoptionRest, _ file: String) throws {
    StandardOutput.print(columns: file, rest.target)
    if let remains = rest.remains, isErasureWanted(remains) { try rest.erase() }
  }

  private func isErasureWanted(_ remains: String) -> Bool {
    if erase { return true }
    StandardError.write(Self.warning(remains))
    guard StandardStream.input.isTerminal else {
      StandardError.write("`keyhole adopt --erase` of the same file overwrites it\n")
      return false
    }
    return isWanted("Overwrite it with zeros, and remove it")
  }

  private static func warning(_ file: String) -> String {
    let git =
      AdoptionRest.wouldGitAdd(file)
      ? "`git add` would take it, as no `.gitignore` has `*\(AdoptionRest.remainsEnding)`.\n" : ""
    return git + """
      The old file is \(file.escapedForTerminal). Overwriting it helps where a disk writes in place. An SSD, a file system that
      copies on write, snapshots and backups keep what was there: replace a secret that matters by a new one.

      """
  }

  private func takeBack(_ file: String) throws {
    var undo = try AdoptionUndo(file)
    let question =
      if undo.writesFile {
        "Write the secrets of \(undo.target) into \(file) in plain text"
      } else if undo.hasTarget {
        "Remove \(undo.target), which an interrupted run has left"
      } else {
        "Forget an interrupted run for \(file), which has stored nothing"
      }
    let hasTarget = undo.hasTarget
    guard yes || isWanted(question) else { throw Self.declined(file) }
    let (obstacle, remains) = try undo.run()
    let outcome = hasTarget ? "\(undo.target) \(obstacle == nil ? "removed" : "stays")" : "nothing was stored"
    StandardOutput.print(columns: file, outcome)
    if let obstacle { StandardError.note("\(undo.target) stays: \(obstacle)") }
    if let remains {
      StandardError.note(
        "\(remains) has what the file was before it was adopted, which is something else by now: "
          + "`shred -u \(remains.quotedForShell)` overwrites and removes it")
    }
  }

  private static func declined(_ file: String) -> Failure {
    let reason = StandardStream.input.isTerminal ? "" : "; without a terminal, --yes does it"
    return Failure(file, "nothing was changed\(reason)", .refused)
  }

  private func isWanted(_ question: String) -> Bool {
    StandardStream.input.isTerminal && Confirmation.isGiven(question)
  }
}
