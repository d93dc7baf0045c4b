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
    try typed(prompt) { try readLine(limit: limit) }
  }

  /// Where standard error is no terminal, the question is written to the one that the person types on: else nothing would show that it is there.
  private static func typed<Line: ~Copyable>(_ prompt: String, _ read: () throws -> Line) throws -> Line {
    guard !StandardStream.errors.isTerminal, let terminal = try? openTerminal() else {
      return try typed(on: StandardStream.errors.number, StandardError.write, prompt, read)
    }
    let number = terminal.number
    return try typed(on: number, { try? Files.write(Array($0.utf8).span, to: number) }, prompt, read)
  }

  private static func typed<Line: ~Copyable>(
    on output: Int32, _ write: (String) -> Void, _ prompt: String, _ read: () throws -> Line
  ) throws -> Line {
    let prompt = prompt.escapedForTerminal
    let line = try HiddenTyping.run(on: StandardStream.input.number) {
      // A user who types at once must find the echo off, and earlier input must be dropped.
      try HiddenTyping.showingAgain(prompt, on: output) {
        write(prompt)
        return try read()
      }
    }
    write("\n")
    return line
  }

  /// The same; nil: the input has ended, which is no empty line.
  package static func askForLine(_ prompt: String) throws -> SecretBytes? {
    try typed(prompt) { try nextLine() }
  }

  /// Runs `body`, which asks on the terminal until an answer is right: what is typed while it tries one is neither shown nor kept.
  package static func askRepeatedly<Value: ~Copyable, Failure: Error>(
    _ body: () throws(Failure) -> Value
  ) throws(Failure) -> Value {
    try HiddenTyping.run(on: StandardStream.input.number, body)
  }

  /// The longest line that is taken where no other limit is given, in bytes.
  package static let lineLimit = SecretReader.lineLimit

  /// A line that a person types, unseen, on the controlling terminal: standard input is another program's.
  ///
  /// - Throws: `Failure` where there is no such terminal.
  package static func askOnTerminal(_ prompt: String) throws -> SecretBytes {
    let terminal = try openTerminal()
    let number = terminal.number
    let line = try HiddenTyping.run(on: number) {
      let prompt = prompt.escapedForTerminal
      return try HiddenTyping.showingAgain(prompt, on: number) {
        try? Files.write(Array(prompt.utf8).span, to: number)
        return try readLine(descriptor: number)
      }
    }
    try? Files.write([0x0A].span, to: number)
    return line
  }

  private static func openTerminal() throws -> Descriptor {
    do throws(Errno) { return try Descriptor("/dev/tty", .readingAndWriting) } catch {
      throw Failure(nil, "there is no terminal to ask on")
    }
  }

  /// One line without its line feed, and not a byte after it: the next reader wants those.
  package static func readLine(
    descriptor: Int32 = StandardStream.input.number, limit: Int = lineLimit
  ) throws -> SecretBytes {
    try SecretReader.readLine(descriptor: descriptor, limit: limit)
  }

  /// The next line of standard input, as `readLine`; nil: the input has ended, which is no empty line.
  package static func nextLine() throws -> SecretBytes? {
    try SecretReader.nextLine(descriptor: StandardStream.input.number)
  }

  /// Everything up to the end.
  package static func read(descriptor: Int32, limit: Int) throws -> SecretBytes {
    try SecretReader.read(descriptor: descriptor, limit: limit)
  }
}
