import Glibc
import Testing

@testable import Service

@Suite struct LineReaderTests {
  private static func lines(_ text: String) -> [String] {
    var ends: [Int32] = [-1, -1]
    guard unsafe pipe(&ends) == 0 else { return [] }
    let bytes = Array(text.utf8)
    // SAFETY: the array says how long it is. A pipe takes this much at once.
    _ = unsafe write(ends[1], bytes, bytes.count)
    close(ends[1])
    defer { close(ends[0]) }
    var reader = LineReader(descriptor: ends[0])
    var lines: [String] = []
    while let line = reader.next() { lines.append(line) }
    return lines
  }

  @Test func linesEndInALineFeed() {
    #expect(Self.lines("c a/b\n\nm größe\n") == ["c a/b", "", "m größe"])
  }

  /// Its writer was ended in the middle of it.
  @Test func lineWithoutAnEndIsNone() {
    #expect(Self.lines("c a/b\nm a/") == ["c a/b"])
    #expect(Self.lines("").isEmpty)
  }

  @Test func lineMayBeLongerThanOneRead() {
    let long = String(repeating: "x", count: 10_000)
    #expect(Self.lines("\(long)\nend\n") == [long, "end"])
  }
}
