import ArgumentParser
import Model
import Prompting
import Service
import Store

struct AllowCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "allow", abstract: "Let a program open a secret without a question.",
    discussion: """
      Writes the rule `allow PROGRAM` before the other rules of an item, of a service or server, or of the whole keychain:
      the attribute `user.keyhole.programs`. Of a guarded item you are asked first, as for every change of its protection.
      A program is known by its file. Whatever starts the program gets what the program gives out: think twice before you
      allow `cat`.

      In a keychain that machines share (a store in a cluster), the rule holds on this machine alone, as its path may be another \
      program on another one. --host names another device, by its number as `keyhole cluster members` prints it, or all of them: `all`.

      With --plain and without a path, the program may have sessions of the Secret Service (`keyhole service`) in which secrets
      cross the session bus without encryption: go-keyring, and so gh, has no other ones. It gets no secret by that which it
      would not get otherwise.
      """)

  @Flag(help: "Let the program take secrets of the Secret Service over the bus without encryption.")
  var plain = false

  @Option(
    help: ArgumentHelp("In a cluster: the device on which the rule holds, or all.", valueName: "number|all"))
  var host: String?

  @OptionGroup var quiet: QuietOption

  @Argument(help: "The program: a path, or a name that is looked up in PATH.", completion: .file())
  var program: String

  @Argument(help: "A path below keychain, or a short name.", completion: .treePath)
  var path: String?

  func validate() throws {
    if plain, path != nil { throw ValidationError("--plain goes without a path") }
    if plain, host != nil { throw ValidationError("--plain goes without --host") }
    if let host, ProgramRules.Host(option: host) == nil {
      throw ValidationError("--host takes a whole number as `keyhole cluster members` prints it, or all")
    }
    if !plain, path == nil { throw ValidationError("Missing expected argument '<path>'") }
  }

  func run() throws {
    quiet.apply()
    let executable = try ProgramPath.resolve(program)
    guard let path else {
      return try ConfigurationSession(for: .plainPrograms).add(executable.string, to: .plainPrograms)
    }
    let opened = try OpenedPath(path, .folders)
    try opened.session.addRule(
      .allow, for: executable, at: opened.path, on: host.flatMap(ProgramRules.Host.init(option:)))
    RuleChange.warn(of: "allow \(executable.string)", in: opened.session)
    if RuleWarning.allowsKeyhole("allow \(executable.string)") {
      StandardError.write("keyhole: \(RuleWarning.text)\n")
    }
  }
}

struct RulesCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "rules", abstract: "Print which programs may open a secret.",
    discussion: """
      The rules for programs in the order in which they are tried, the first that matches decides: those of the item, of
      its service or server, and of the keychain. One line each: where the rule stands, and the rule; in a cluster also on which
      devices it holds. The last line says what holds for programs that no rule names.
      """)

  @Flag(help: "A JSON array of objects: place, empty for the last line, rule, and in a cluster hosts.")
  var json = false

  @Argument(help: "A path below keychain, or a short name.", completion: .treePath)
  var path: String

  func run() throws {
    let opened = try OpenedPath(path, .folders)
    let rules = try opened.session.effectiveRules(at: opened.path)
    let lines = rules.lines + [("", rules.remainder, nil)]
    guard !json else {
      return JSONList.print(lines) { line in
        [("place", line.0.quotedAsJSON), ("rule", line.1.quotedAsJSON)]
          + (line.2.map { [("hosts", $0.quotedAsJSON)] } ?? [])
      }
    }
    for (place, rule, hosts) in lines {
      let columns = [place.isEmpty ? "otherwise" : place, rule] + (hosts.map { [$0] } ?? [])
      StandardOutput.print(columns: columns)
    }
  }
}
