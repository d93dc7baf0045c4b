import Model
import Prompting

extension Failure {
  /// Prints one line on standard error.
  func report() { StandardError.write("keyhole: \(line)\n") }

  /// One line for a person.
  var line: String {
    let reason = reason.escapedForTerminal.abbreviated
    return subject.map { "\($0.abbreviated.escapedForTerminal): \(reason)" } ?? reason
  }
}
