import Model
import Platform
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

  /// A line that a person types, unseen, on the controlling terminal: standard input is another program's.
  ///
  /// - Throws: `Failure` where there is no such terminal.
  package static func askOnTerminal(_ prompt: String) throws -> SecretBytes {
    let terminal = try openTerminal()
    let number = terminal.number
    let line = try HiddenTyping.run(on: number) {
      try? Files.write(Array(prompt.escapedForTerminal.utf8).span, to: number)
      return try readLine(descriptor: number)
    }
    try? Files.write([0x0A].span, to: number)
    return line
  }

  private static func openTerminal() throws -> Descriptor {
    do throws(Errno) { return try Descriptor("/dev/tty", .readingAndWriting) } catch {
      throw Failure(nil, "there is no terminal to ask on")
    }
  }

  package static let lineLimit = 8 * 1024

  /// One line without its line feed, and not a byte after it: the next reader wants those.
  package static func readLine(
    descriptor: Int32 = StandardStream.input.number, limit: Int = lineLimit
  ) throws -> SecretBytes {
    var line = try collect(descriptor, limit: limit, chunk: 1) { $0.last == 0x0A }
    if line.span.last == 0x0A { try line.resize(to: line.count - 1) }
    return line
  }

  /// Everything up to the end.
  package static func read(descriptor: Int32, limit: Int) throws -> SecretBytes {
    try collect(descriptor, limit: limit, chunk: 16 * 1024) { _ in false }
  }

  private static func collect(
    _ descriptor: Int32, limit: Int, chunk size: Int, until isEnd: (Span<UInt8>) -> Bool
  ) throws -> SecretBytes {
    var input = try SecretBytes()
    var chunk = try SecretBytes(pinnable: size)
    while true {
      let count = try read(descriptor, into: &chunk)
      try input.append(chunk.span.extracting(..<count))
      guard input.count <= limit else { throw Failure(nil, "more than \(limit) bytes came") }
      if count == 0 || isEnd(input.span) { return input }
    }
  }

  private static func read(_ descriptor: Int32, into chunk: inout SecretBytes) throws -> Int {
    var room = chunk.mutableSpan
    do throws(Errno) { return try Files.read(into: &room, from: descriptor) } catch {
      throw Failure(nil, "the input can't be read: \(error)")
    }
  }
}
