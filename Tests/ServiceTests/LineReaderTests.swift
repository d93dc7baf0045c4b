import Platform
import Testing

@testable import Service

@Suite struct LineReaderTests {
  private static func lines(_ text: String) throws -> [String] {
    let (reader, writer) = try StreamSocket.pair()
    try writer.send(Array(text.utf8).span, until: .now + .seconds(10))
    writer.endSending()
    var lines = LineReader(reader)
    var all: [String] = []
    while let line = lines.next() { all.append(line) }
    return all
  }

  @Test func linesEndInALineFeed() throws {
    #expect(try Self.lines("c a/b\n\nm größe\n") == ["c a/b", "", "m größe"])
  }

  /// Its writer was ended in the middle of it.
  @Test func lineWithoutAnEndIsNone() throws {
    #expect(try Self.lines("c a/b\nm a/") == ["c a/b"])
    #expect(try Self.lines("").isEmpty)
  }

  @Test func lineMayBeLongerThanOneRead() throws {
    let long = String(repeating: "x", count: 10_000)
    #expect(try Self.lines("\(long)\nend\n") == [long, "end"])
  }
}
