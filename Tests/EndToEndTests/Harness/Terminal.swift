import Glibc
import Synchronization

/// A program in a pseudo-terminal of its own, and the person before it.
final class Terminal: Sendable {
  private let program: Program
  private let side: OpenFile
  private let otherSide: String
  private let errors: String
  private let shown = Mutex<[UInt8]>([])

  /// Starts a program in a terminal of 24 lines; what it says on standard error goes elsewhere.
  init(_ arguments: [String], environment: [String], directory: String, errors: String) throws(Errno) {
    let (side, path) = try System.pseudoTerminal()
    self.side = side
    otherSide = path
    self.errors = errors
    let script = "stty rows 24 cols 80 <&0; exec \"$@\" 2> \"$0\""
    let command = ["/bin/sh", "-c", script, errors] + arguments
    // Of a session of its own, so that the terminal can be its controlling one.
    program = try Program(
      ["/bin/sh", "-c", "exec setsid --ctty --wait \"$@\" 0<> \"$0\" 1>&0", path] + command,
      environment: environment + ["TERM=linux"], directory: directory)
  }

  deinit {
    // Closing the terminal sends SIGHUP to the processes that still use it.
    program.kill()
  }

  /// The text on the terminal so far, without control sequences.
  var text: String { Self.plain(shown.withLock { $0 }) }

  /// Presses keys, when the program has taken those that were pressed before.
  func type(_ keys: String) throws {
    let other = try OpenFile(otherSide, O_RDONLY | O_NOCTTY)
    guard try holds({ try System.unreadBytes(other) == 0 }) else {
      throw TimedOut(what: "the program does not read what is typed: \(text)")
    }
    try typeAhead(keys)
  }

  /// Presses keys without regard to what the program does.
  func typeAhead(_ keys: String) throws {
    var rest = Array(keys.utf8)[...]
    while !rest.isEmpty { rest = rest.dropFirst(try side.write(Array(rest))) }
  }

  /// Presses a key again and again until something has been shown, and returns what was shown before it.
  func typeAhead(_ key: String, until text: String, within duration: Duration = .seconds(20)) throws -> String
  {
    let deadline = Deadline(in: duration)
    while true {
      let before = self.text
      if forget(upTo: text) {
        return String(before[..<(before.range(of: text)?.lowerBound ?? before.endIndex)])
      }
      if deadline.hasPassed { throw TimedOut(what: "\(text.debugDescription) in \(before)") }
      try typeAhead(key)
      let pause = Deadline(in: .milliseconds(10))
      if (try? Program.wait(for: [(side, POLLIN)], until: pause, "")) != nil { _ = try readMore() }
    }
  }

  /// Whether it shows what is typed (ECHO of termios(3)).
  var echoes: Bool {
    get throws {
      let other = try OpenFile(otherSide, O_RDONLY | O_NOCTTY)
      return try System.echoes(other)
    }
  }

  /// Drags the window's edge.
  func resize(rows: Int32, columns: Int32) throws {
    try System.setWindow(of: side, rows: rows, columns: columns)
  }

  /// Returns when something has been shown that was not there when this was called the last time.
  func wait(for text: String, within duration: Duration = .seconds(20)) throws {
    let deadline = Deadline(in: duration)
    while true {
      if forget(upTo: text) { return }
      try Program.wait(for: [(side, POLLIN)], until: deadline, "\(text.debugDescription) in \(self.text)")
      guard try readMore() else {
        throw TimedOut(what: "ended before \(text.debugDescription): \(self.text)")
      }
    }
  }

  /// Waits for the program's end: its exit code, what it showed last, and what it said on standard error.
  func finish(within duration: Duration = .seconds(20)) throws -> Output {
    let deadline = Deadline(in: duration)
    while try readMore(until: deadline) {}
    let status = try program.waitForEnd(until: deadline)
    return Output(status: status, bytes: Array(text.utf8), error: (try? System.text(errors)) ?? "")
  }

  private func readMore(until deadline: Deadline) throws -> Bool {
    try Program.wait(for: [(side, POLLIN)], until: deadline, "the end of the program: \(text)")
    return try readMore()
  }

  /// Whether there was anything; a terminal that no process has open reports EIO.
  private func readMore() throws -> Bool {
    let part = (try? side.read()) ?? []
    shown.withLock { $0 += part }
    return !part.isEmpty
  }

  private func forget(upTo text: String) -> Bool {
    shown.withLock { shown in
      let plain = Self.plain(shown)
      guard let range = plain.range(of: text) else { return false }
      shown = Array(plain[range.upperBound...].utf8)
      return true
    }
  }

  /// Without escape sequences: those of control (`ESC [ … letter`), of character sets, and single ones.
  private static func plain(_ bytes: [UInt8]) -> String {
    let text = String(decoding: bytes, as: UTF8.self)
    return text.replacing(
      /\u{1B}(\[[0-9;?>=]*[A-Za-z@`]|[()][A-Z0-9]|\][^\u{07}]*\u{07}|[A-Za-z0-9=>])/, with: ""
    )
    .replacing("\r", with: "")
  }
}

extension String {
  fileprivate func range(of text: String) -> Range<String.Index>? {
    guard let first = text.first else { return startIndex..<startIndex }
    var from = startIndex
    while let start = self[from...].firstIndex(of: first) {
      if self[start...].hasPrefix(text) { return start..<index(start, offsetBy: text.count) }
      from = index(after: start)
    }
    return nil
  }
}
