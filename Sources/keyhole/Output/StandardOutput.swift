import Model
import Platform
import Prompting

/// write(2) to standard output, until everything is out.
///
/// A failed write ends the process with exit code 1: a script must not take half for the whole.
enum StandardOutput {
  static func write(_ text: String) { write(Array(text.utf8).span) }

  /// Output for people ends in a line feed; a value is written as it is.
  static func print(_ line: String) { write(line + "\n") }

  /// A line of names and words with tabs between them.
  static func print(columns: String...) { print(columns: columns) }

  static func print(columns: [String]) { print(columns.map(\.forStandardOutput).joined(separator: "\t")) }

  static func write(_ bytes: Span<UInt8>) {
    do { try Files.write(bytes, to: StandardStream.output.number) } catch {
      StandardError.write("keyhole: standard output can't be written: \(error)\n")
      CurrentProcess.exit(1)
    }
  }
}

extension String {
  /// As it is for programs, escaped for people: what a line of standard output has of names.
  var forStandardOutput: String { StandardStream.output.isTerminal ? escapedForTerminal : self }

  /// The same of a JSON text.
  var jsonForStandardOutput: String { StandardStream.output.isTerminal ? visibleAsJSON : self }
}
