import Model
import Platform
import Synchronization

/// Messages for the person who runs a command.
package enum StandardError {
  /// Lines for people: what is not visible in them is escaped.
  package static func write(_ text: String) {
    let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
    draw(lines.map { String($0).visible }.joined(separator: "\n"))
  }

  private static let isSilent = Atomic(false)

  /// From now on `note` writes nothing.
  package static func silenceNotes() { isSilent.store(true, ordering: .relaxed) }

  /// Whether notes and progress are shown.
  package static var showsNotes: Bool { !isSilent.load(ordering: .relaxed) }

  /// A line that a person may do without: `keyhole: note: …`.
  package static func note(_ text: String) {
    if showsNotes { write("keyhole: note: \(text)\n") }
  }

  /// Text that steers the terminal. It holds no name, and nothing that was read.
  package static func draw(_ text: String) {
    try? Files.write(Array(text.utf8).span, to: StandardStream.errors.number)
  }
}
