import ArgumentParser
import Model
import Platform
import Prompting
import SecretMemory
import Service

/// `keyhole`: settings and secrets as files, with a mount or without.
struct KeyholeCommand: ParsableCommand {
  static let version = "0.1.0"

  static let configuration = CommandConfiguration(
    commandName: "keyhole",
    abstract: "Settings and secrets as files.",
    discussion: """
      The paths that commands take are those of the tree:
        defaults/SUITE/KEY                            a setting
        keychain/generic/SERVICE/ACCOUNT/value        a secret
        keychain/generic/SERVICE/ACCOUNT/otpauth      its otpauth:// URI, for one-time codes
        keychain/generic/SERVICE/ACCOUNT/otp          the one-time code, if it has that URI
        keychain/internet/SERVER/ACCOUNT/value        a secret of a server
        views/NAME                                    a file of another program, made of items and settings
      An item may stand for its value. A path in a mount, absolute or relative, is taken too, and for an item that is \
      there SERVICE/ACCOUNT, or SERVICE where it has one account; a short name creates and removes nothing. They work \
      with a mount and without.

      --json of a list is an array of objects, also of an empty one; of one thing an object. log and watch, which follow \
      what happens, have an object a line. -q leaves out notes and progress, never errors and warnings.

      Exit codes: 0 done, 1 failed, 2 wrong usage, 3 not found, 4 locked, 5 refused.
      """,
    version: Self.version,
    subcommands: [
      MountCommand.self, UnmountCommand.self, StatusCommand.self, ListCommand.self, GetCommand.self,
      SetCommand.self, OneTimeCodeCommand.self, RemoveCommand.self, ResetCommand.self, MoveCommand.self,
      CopyCommand.self,
      FindCommand.self,
      SearchCommand.self, GenerateCommand.self, ClipCommand.self, RunCommand.self, AttributeCommand.self,
      EditCommand.self,
      ExportCommand.self,
      ImportCommand.self, BackupCommand.self, RestoreCommand.self, MigrateCommand.self, UpgradeCommand.self,
      AcceptCommand.self,
      DoctorCommand.self, ConfigCommand.self,
      LockCommand.self, UnlockCommand.self, PassphraseCommand.self, AuthenticateCommand.self,
      CompletionsCommand.self,
      RequestsCommand.self, ApproveCommand.self, DenyCommand.self, AllowCommand.self, RulesCommand.self,
      HistoryCommand.self, UndoCommand.self, CredentialCommand.self, ServiceCommand.self, ViewCommand.self,
      AdoptCommand.self, ClusterCommand.self,
      WatchCommand.self, LogCommand.self, ReplayCommand.self,
      ClearClipboardCommand.self, RunMonitorCommand.self,
    ])

  /// Parses and runs, and ends the process with the exit code of SPECIFICATION.md, section 10.
  static func run(_ arguments: [String]) -> Never {
    do {
      try perform(arguments)
      CurrentProcess.exit(0)
    } catch let failure as Failure {
      failure.withWayOn.report()
      CurrentProcess.exit(failure.kind.rawValue)
    } catch is SecretMemoryError {
      Failure(nil, "there is not enough locked memory for secrets; `ulimit -l` sets the limit, in KiB")
        .report()
      CurrentProcess.exit(1)
    } catch {
      end(with: error, arguments)
    }
  }

  private static func perform(_ arguments: [String]) throws {
    if let path = pathOfPlainGet(arguments) { return try GetCommand.print(path) }
    try requireCommand(arguments)
    var command = try parseAsRoot(Arguments.prepared(arguments))
    // Where an error ends it, too.
    defer { MountCatchUp.run() }
    try command.run()
  }

  /// Whether words are a command with arguments that it takes; nothing is run.
  static func takes(_ arguments: [String]) -> Bool {
    (try? requireCommand(arguments)) != nil && (try? parseAsRoot(Arguments.prepared(arguments))) != nil
  }

  /// The commands that the help names.
  static var commandNames: [String] {
    configuration.subcommands.map { $0.configuration }.filter { $0.shouldDisplay }.compactMap {
      $0.commandName
    }
  }

  /// - Throws: `UsageError` for a word that is no command where one has to be, with the one that was probably meant.
  private static func requireCommand(_ arguments: [String]) throws {
    let words = arguments.first == "help" ? arguments.dropFirst() : arguments[...]
    guard let word = words.first, !word.hasPrefix("-"), word != "help" else { return }
    let commands = configuration.subcommands
    guard let command = commands.first(where: { $0.configuration.commandName == word }) else {
      let likely = likelyCommand(word)
      let hint = likely.map { "; did you mean `\($0)`?" } ?? "; `keyhole --help` lists them"
      throw UsageError(message: "there is no command `\(word)`\(hint)")
    }
    let names = command.configuration.subcommands.compactMap { $0.configuration.commandName }
    guard let second = words.dropFirst().first, !names.isEmpty, !second.hasPrefix("-"),
      !(names + ["help"]).contains(second)
    else { return }
    let likely = Spelling.nearest(to: second, among: names)
    let hint = likely.map { "; did you mean `\(word) \($0)`?" } ?? "; `keyhole \(word) --help` lists them"
    throw UsageError(message: "there is no command `\(word) \(second)`\(hint)")
  }

  /// The command that a word with typing errors was probably meant to be, here or elsewhere.
  private static func likelyCommand(_ word: String) -> String? {
    if let command = commandsElsewhere[word] { return command }
    return Spelling.nearest(to: word, among: commandNames + ["help"])
      ?? Spelling.nearest(to: word, among: commandsElsewhere.keys.sorted()).flatMap { commandsElsewhere[$0] }
  }

  /// The names that other programs give to commands.
  private static let commandsElsewhere = [
    "cat": "get", "show": "get", "read": "get", "insert": "set", "add": "set", "put": "set", "write": "set",
    "store": "set", "list": "ls", "tree": "ls -R", "dir": "ls", "remove": "rm", "delete": "rm", "del": "rm",
    "rename": "mv", "move": "mv", "copy": "cp", "grep": "search", "umount": "unmount", "version": "--version",
    "exec": "run", "copy-to-clipboard": "clip", "passwd": "passphrase", "check": "doctor",
  ]

  /// The path of `get PATH`; nil: it is another command, or has options. Scripts call it often, and ArgumentParser takes
  /// longer than all the rest of it.
  private static func pathOfPlainGet(_ arguments: [String]) -> String? {
    guard arguments.count == 2, arguments[0] == "get", arguments[1].utf8.first != UInt8(ascii: "-") else {
      return nil
    }
    return arguments[1]
  }

  private static func end(with error: any Error, _ arguments: [String]) -> Never {
    guard exitCode(for: error) != .success else { exit(withError: error) }
    let usage = error as? UsageError
    let reason = usage?.message ?? message(for: error)
    let line = reason.split(separator: "\n").joined(separator: " ")
    StandardError.write("keyhole: \(line.escapedForTerminal)\n\(self.usage(arguments))\n")
    // The codes of `run` are those of the program, so its own are env(1)'s.
    CurrentProcess.exit(arguments.first == "run" ? RunCommand.failure : 2)
  }

  /// The usage line of the command that was called; of `keyhole` itself where there is none of the name.
  private static func usage(_ arguments: [String]) -> String {
    let command = configuration.subcommands.first { $0.configuration.commandName == arguments.first }
    let text = command.map { usageString(for: $0) } ?? usageString()
    let words = text.split { $0 == "\n" || $0 == " " }.joined(separator: " ")
    return (words.hasPrefix("Usage: ") ? "" : "Usage: ") + words
  }
}
