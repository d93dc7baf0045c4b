import Platform
import Prompting

/// The command line as text.
enum Arguments {
  /// The arguments behind the program's name. One that is not UTF-8 ends the process with exit code 2: Swift would
  /// repair it, and the command would work on another name, or store another value.
  static func ofProcess() -> [String] {
    CurrentProcess.arguments.enumerated().map { index, word in
      guard let word else {
        StandardError.write(
          "keyhole: argument \(index + 1) is not UTF-8; names and values are Unicode text\n")
        CurrentProcess.exit(2)
      }
      return word
    }
  }
}
