import Model
import Platform

/// Messages for the person who runs a command.
package enum StandardError {
  /// Lines for people: what is not visible in them is escaped.
  package static func write(_ text: String) {
    let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
    draw(lines.map { String($0).visible }.joined(separator: "\n"))
  }

  /// Text that steers the terminal. It holds no name, and nothing that was read.
  package static func draw(_ text: String) {
    try? Files.write(Array(text.utf8).span, to: StandardStream.errors.number)
  }
}
