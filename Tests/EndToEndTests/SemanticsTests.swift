import Testing

/// `Documentation/SEMANTICS.md`, run as it stands there: what it says a line prints, the line prints.
@Suite(.timeLimit(.minutes(1))) struct SemanticsTests {
  private struct Line {
    var command: String
    var output = ""
  }

  private static func lines() throws -> [Line] {
    let path = Products.helpers + "/../Documentation/SEMANTICS.md"
    var lines: [Line] = []
    var isConsole = false
    for line in try System.text(path).split(separator: "\n", omittingEmptySubsequences: false) {
      if line.hasPrefix("```") {
        isConsole = line == "```console"
      } else if isConsole, line.hasPrefix("$ ") {
        lines.append(Line(command: String(line.dropFirst(2))))
      } else if isConsole, let last = lines.indices.last {
        lines[last].output += line + "\n"
      }
    }
    return lines
  }

  @Test func everyLineOfTheDocumentPrintsWhatItSays() async throws {
    let lines = try Self.lines()
    #expect(lines.count > 30)
    try await withKeyhole { keyhole in
      // One shell runs them all; each is a line of its own to it, as on a terminal.
      let quoted = lines.map {
        "'" + $0.command.split(separator: "'", omittingEmptySubsequences: false).joined(separator: "'\\''")
          + "'"
      }
      let script = "exec 2>&1\n" + quoted.map { "eval \($0); printf '\\001'" }.joined(separator: "\n")
      let printed = try keyhole.sh(script).text.split(separator: "\u{1}", omittingEmptySubsequences: false)
      #expect(printed.count == lines.count + 1)
      for (line, printed) in zip(lines, printed) {
        // bash names the line of the script; on a terminal there is none.
        let printed = printed.replacing(/bash: line [0-9]+:/, with: "bash: line 1:")
        #expect(printed == line.output, "\(line.command)")
      }
    }
  }
}
