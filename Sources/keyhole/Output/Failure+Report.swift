import Model
import Prompting

extension Failure {
  /// Prints one line on standard error.
  func report() {
    let reason = reason.escapedForTerminal.abbreviated
    let text = subject.map { "\($0.abbreviated.escapedForTerminal): \(reason)" } ?? reason
    StandardError.write("keyhole: \(text)\n")
  }
}
