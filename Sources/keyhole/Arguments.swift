import Glibc
import Prompting

/// The command line as text.
enum Arguments {
  /// The arguments behind the program's name. One that is not UTF-8 ends the process with exit code 2: Swift would
  /// repair it, and the command would work on another name, or store another value.
  static func ofProcess() -> [String] {
    // SAFETY: the C runtime gives `argc` pointers to strings that end with NUL and live as long as the process.
    let words = unsafe UnsafeBufferPointer(start: CommandLine.unsafeArgv, count: Int(CommandLine.argc))
    return unsafe words.enumerated().dropFirst().map { position, word in
      guard let word = unsafe word, let text = unsafe String(validatingCString: word) else {
        StandardError.write("keyhole: argument \(position) is not UTF-8; names and values are Unicode text\n")
        exit(2)
      }
      return text
    }
  }
}
