import Platform
import Prompting
import Service

/// The command line as text.
enum Arguments {
  /// The arguments behind the program's name. One that is not UTF-8 ends the process with exit code 2: Swift would
  /// repair it, and the command would work on another name, or store another value.
  ///
  /// Called by the name of a tool's helper, the command is `credential` with that tool.
  static func ofProcess() -> [String] {
    let helper = CredentialTool(helper: CurrentProcess.programName)
    return (helper.map { ["credential", $0.rawValue] } ?? []) + words()
  }

  private static func words() -> [String] {
    CurrentProcess.arguments.enumerated().map { index, word in
      guard let word else {
        StandardError.write(
          "keyhole: argument \(index + 1) is not UTF-8; names and values are Unicode text\n")
        CurrentProcess.exit(2)
      }
      return word
    }
  }

  /// The words that stand before a value in the commands that take one, without options.
  private static let wordsBeforeValue = ["set": 1, "attr": 2]

  /// With `--` before a value that begins with a dash, as in `set PATH -5`. A word with two dashes stays an option: a typing
  /// error in one must not become a value.
  static func withDashedValue(_ arguments: [String]) -> [String] {
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
