import Model
import Platform

// `keyhole` opens items for other programs: `keyhole run` for the one that it starts, a credential helper for the one that has
// started it. A question names that program, and an answer is one for that program.

extension Caller.Identity {
  /// The program that `keyhole run` starts with what it opens.
  public struct StartedCommand: Hashable, Sendable {
    /// So many bytes of a command line are shown to a person.
    public static let longestShown = 1000

    /// The file that is started; nil: `keyhole run` did not say which.
    public var program: Executable?
    /// The command line of `keyhole run` itself, with a NUL byte behind each word, byte for byte.
    public var commandLine: [UInt8]
    /// The words of the program, with its name.
    public var words: [String]

    /// Whether a dialog shows all of it: then an answer may hold for other processes with the same command.
    var isShown: Bool { program != nil && commandLine.count <= Self.longestShown }

    /// For a person: the path of the program and its arguments, as a shell takes them.
    public var text: String {
      ([name.quotedForShell] + words.dropFirst().map { $0.isEmpty ? "''" : $0.quotedForShell })
        .joined(separator: " ")
    }

    /// The path of the program, or its name where that is not known.
    public var name: String { program?.path ?? words.first ?? "" }
  }

  /// The program that has started a credential helper, and gets the answer: the parent, as the system shows it.
  public struct HelpedProgram: Hashable, Sendable {
    /// As in `keyhole credential TOOL`.
    public var tool: String
    public var process: Process
    /// nil: it can't be read, as of a program that runs with other rights.
    public var executable: Executable?
    /// As the process shows it (PR_SET_NAME).
    var processName: String

    /// For a person: `git, by keyhole credential git`; of a program that its user can change the path.
    public var text: String {
      let name = executable.map {
        $0.isFixed ? $0.path.split(separator: "/").last.map(String.init) ?? "" : $0.path
      }
      return "\(name ?? "[\(processName)]"), by keyhole credential \(tool)"
    }

    /// Whether the other is the same program, whatever process of it.
    func isSame(as other: HelpedProgram) -> Bool { tool == other.tool && executable == other.executable }
  }

  /// The name for a question: the program that gets the secret, and the way it takes.
  public var shownName: String { helped?.text ?? programName }

  /// Whether `keyhole` opens an item for another program.
  var servesAnother: Bool { startedCommand != nil || helped != nil }

  /// Whether the program that it serves is known well enough to be recognised later; true: it serves none.
  var isServedKnown: Bool { startedCommand?.isShown ?? (helped.map { $0.executable != nil } ?? true) }

  /// Whether it serves the same program as another one, with the same command.
  func serves(_ command: StartedCommand?, _ program: HelpedProgram?) -> Bool {
    guard startedCommand == command else { return false }
    guard let helped, let program else { return helped == nil && program == nil }
    return helped.isSame(as: program)
  }

  /// SHA-256 of the served program, if its user can change the file; nil: that can't be, or it serves none. Empty: it can't be
  /// read.
  func digestOfServed() -> String? {
    guard let program = startedCommand?.program ?? helped?.executable, !program.isFixed else { return nil }
    guard FileID(program.path) == program.file else { return "" }
    return Self.digest(ofFile: program.path) ?? ""
  }
}

extension Caller.Identity.Executable {
  /// Whether only root can change the file.
  var isFixed: Bool {
    guard let status = try? Files.status(path) else { return false }
    return status.id == file && status.owner == 0 && status.permissions & 0o022 == 0
  }
}

// MARK: - Reading

extension Caller.Identity {
  private static let name = "keyhole"

  static func startedCommand(
    _ executable: Executable?, _ commandLine: [UInt8], _ process: Process
  ) -> StartedCommand? {
    let program = IdentifiedCallers.startedProgram(of: process)
    let words = ProcessFiles.words(commandLine)
    guard words.count > 1, words[1] == "run", program != nil || isKeyhole(executable),
      let end = words.firstIndex(of: "--")
    else { return nil }
    // A NUL byte ends the last word.
    return StartedCommand(
      program: program, commandLine: commandLine, words: Array(words[end...].dropFirst().dropLast()))
  }

  static func helped(
    _ executable: Executable?, _ words: [String], _ process: Process, parent: Int32?
  ) -> HelpedProgram? {
    guard isKeyhole(executable), let tool = CredentialHelper.tool(of: words) else { return nil }
    if let known = IdentifiedCallers.helped(by: process) { return known }
    guard let number = parent, number > 0, let stat = ProcessFiles(number).status, let start = stat.start
    else {
      return HelpedProgram(
        tool: tool, process: process, executable: nil, processName: "a process that has ended")
    }
    let files = ProcessFiles(number)
    let found = files.executablePath.flatMap { path in
      files.executable.map { Executable(path: path, file: $0, hasPath: FileID(path) == $0) }
    }
    let helped = HelpedProgram(
      tool: tool, process: Process(number: number, start: start), executable: found, processName: stat.name)
    // Read again: as long as it is the parent, it has not ended, and all of this is its own.
    guard ProcessFiles(process.number).status?.parent == number, helped.process.isRunning else {
      return HelpedProgram(
        tool: tool, process: process, executable: nil, processName: "a process that has ended")
    }
    return helped
  }

  /// Whether the program that is helped is still the parent, with the same executable.
  var isHelpedUnchanged: Bool {
    guard let helped, let process else { return true }
    guard ProcessFiles(process.number).status?.parent == helped.process.number, helped.process.isRunning
    else {
      return false
    }
    return ProcessFiles(helped.process.number).executable == helped.executable?.file
  }

  private static func isKeyhole(_ executable: Executable?) -> Bool {
    executable?.path.split(separator: "/").last.map { $0 == name || $0 == "\(name) (deleted)" } == true
  }
}

/// The names that tools call Keyhole's credential helpers by.
public enum CredentialHelper {
  /// The names of the links to the command, each with its word of `keyhole credential TOOL`. No dictionary: its type takes
  /// longer to make than this to search.
  public static let tools = [
    (name: "git-credential-keyhole", tool: "git"), (name: "docker-credential-keyhole", tool: "docker"),
    (name: "cargo-credential-keyhole", tool: "cargo"),
    (name: "terraform-credentials-keyhole", tool: "terraform"),
    (name: "bazel-credential-keyhole", tool: "bazel"), (name: "keyhole-askpass", tool: "askpass"),
  ]

  /// The word of `keyhole credential TOOL` that a name of the command stands for; nil: it is another name.
  public static func tool(helper name: String) -> String? { tools.first { $0.name == name }?.tool }

  /// The tool that a command line is called for; nil: it is another command.
  static func tool(of words: [String]) -> String? {
    guard let name = words.first?.split(separator: "/").last else { return nil }
    if let tool = tool(helper: String(name)) { return tool }
    guard words.count > 2, words[1] == "credential" else { return nil }
    return words[2...].first { !$0.hasPrefix("-") }
  }
}
