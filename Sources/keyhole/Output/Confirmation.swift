import Model
import Prompting

/// A question that a person answers with yes or no.
enum Confirmation {
  /// Asks on standard error, and reads a line of standard input. Every answer but `y` and `yes` is no, and so is the end of the input.
  static func isGiven(_ question: String) -> Bool {
    StandardError.write("\(question)? (y/N) ".escapedForTerminal)
    let answer = readLine()?.lowercased() ?? ""
    return answer == "y" || answer == "yes"
  }
}
