import Model
import Platform
import PromptHelper
package import SecretMemory

/// Standard input as bytes that leave no copy; on a terminal, what a person types.
package enum SecretInput {
  /// Reads to the end of standard input; from a terminal one line, without its line feed.
  ///
  /// - Throws: `Failure` where more than `limit` bytes come, or nothing can be read.
  package static func read(prompt: String, hidden: Bool, limit: Int) throws -> SecretBytes {
    guard hidden, isTyped else { return try read(descriptor: StandardStream.input.number, limit: limit) }
    return try ask(prompt, limit: limit)
  }

  /// Whether a person types: standard input is a terminal.
  package static var isTyped: Bool { StandardStream.input.isTerminal }

  /// A passphrase: typed unseen on a terminal, else the first line of standard input.
  ///
  /// - Throws: as `readLine(descriptor:limit:)`.
  package static func passphrase(_ prompt: String) throws -> SecretBytes {
    try isTyped ? ask(prompt) : readLine()
  }

  /// A line that a person types on the terminal, unseen.
  package static func ask(_ prompt: String, limit: Int = lineLimit) throws -> SecretBytes {
    let line = try HiddenTyping.run(on: StandardStream.input.number) {
      // A user who types at once must find the echo off, and earlier input must be dropped.
      StandardError.write(prompt)
      return try readLine(limit: limit)
    }
    StandardError.write("\n")
    return line
  }

  /// The longest line that is taken where no other limit is given, in bytes.
  package static let lineLimit = SecretReader.lineLimit

  /// One line without its line feed, and not a byte after it: the next reader wants those.
  package static func readLine(
    descriptor: Int32 = StandardStream.input.number, limit: Int = lineLimit
  ) throws -> SecretBytes {
    try SecretReader.readLine(descriptor: descriptor, limit: limit)
  }

  /// Everything up to the end.
  package static func read(descriptor: Int32, limit: Int) throws -> SecretBytes {
    try SecretReader.read(descriptor: descriptor, limit: limit)
  }
}
