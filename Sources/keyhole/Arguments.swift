import Platform
import Prompting
import Service
import Store

/// The command line as text.
enum Arguments {
  /// The arguments behind the program's name. One that is not UTF-8 ends the process with exit code 2: Swift would
  /// repair it, and the command would work on another name, or store another value.
  ///
  /// Called by the name of a tool's helper, the command is `credential` with that tool.
  ///
  /// Those of a program that `run` starts are only shown, and passed on as they are: `ofProgram`.
  static func ofProcess() -> [String] {
    if let helper = CredentialTool(helper: CurrentProcess.programName) {
      return ["credential", helper.rawValue]
        + CurrentProcess.arguments.enumerated().map { index, word in
          if let word { return word }
          refuse(index, exitCode: 2)
        }
    }
    let words = CurrentProcess.arguments
    let isRun = words.first == "run"
    let end = (isRun ? words.firstIndex(of: "--") : nil) ?? words.count
    return words.enumerated().map { index, word in
      if let word { return word }
      if index > end { return "\u{FFFD}" }
      refuse(index, exitCode: isRun ? 125 : 2)
    }
  }

  private static func refuse(_ index: Int, exitCode: Int32) -> Never {
    let isFile = ["adopt", "import"].contains(CurrentProcess.arguments.first ?? "")
    StandardError.write(
      "keyhole: argument \(index + 1) is not UTF-8; names and values are Unicode text"
        + (isFile ? ". Give the file another name with mv(1) first" : "") + "\n")
    CurrentProcess.exit(exitCode)
  }

  /// The program that `run` starts, looked up at the first use; nil: no word stands behind `--`.
  static let foundProgram: Result<FoundProgram, Errno>? = ofProgram().first.map { name in
    Result { () throws(Errno) in try FoundProgram(name, in: Environment.value("PATH")) }
  }

  /// The same for those that see who opens items; nil: it was not found, or this is not `run`.
  static func executableOfProgram() -> Caller.Identity.Executable? {
    guard CurrentProcess.arguments.first == "run", case .success(let program)? = foundProgram else {
      return nil
    }
    return .init(path: program.absolutePath, file: program.file)
  }

  /// The words behind `--`, byte for byte.
  static func ofProgram() -> [[UInt8]] {
    guard let end = CurrentProcess.arguments.firstIndex(of: "--") else { return [] }
    return Array(CurrentProcess.argumentBytes.dropFirst(end + 1))
  }

  /// The arguments as the parser takes them.
  static func prepared(_ arguments: [String]) -> [String] {
    arguments.first == "run" ? withNamedPaths(arguments) : withDashedValue(arguments)
  }

  /// With `--env` before each path of `run`: the parser has one list of words at most, which is that of the program.
  private static func withNamedPaths(_ arguments: [String]) -> [String] {
    let end = arguments.firstIndex(of: "--") ?? arguments.count
    var words = ["run"]
    for (index, word) in arguments[..<end].enumerated().dropFirst() {
      let isValue = runOptionsWithValue.contains(arguments[index - 1])
      if !word.hasPrefix("-"), !isValue { words.append("--env") }
      words.append(word)
    }
    return words + arguments[end...]
  }

  private static let runOptionsWithValue: Set<String> = ["--env", "--file", "--fd", "--view", "--on-change"]

  /// The words that stand before a value in the commands that take one, without options.
  private static let wordsBeforeValue = ["set": 1, "attr": 2]

  /// With `--` before a value that begins with a dash, as in `set PATH -5`. A word with two dashes stays an option: a typing
  /// error in one must not become a value.
  private static func withDashedValue(_ arguments: [String]) -> [String] {
    guard let command = arguments.first, let before = wordsBeforeValue[command], !arguments.contains("--")
    else {
      return arguments
    }
    var words = 0
    for (index, word) in arguments.enumerated().dropFirst() {
      let isOption = word.hasPrefix("-") && word != "-"
      if words == before, isOption, !word.hasPrefix("--"), word != "-h" {
        return arguments.prefix(index) + ["--"] + arguments.dropFirst(index)
      }
      // The value of an option is no word of the command.
      if !isOption, !optionsWithValue.contains(arguments[index - 1]) { words += 1 }
    }
    return arguments
  }

  private static let optionsWithValue: Set<String> = ["--access"]
}
