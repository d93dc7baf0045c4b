import Model
import Platform
import Store
import Testing
import Tree

/// The snapshot of a reader: the value of its open, and bytes that were only added to it since.
@Suite struct SnapshotTests {
  private static let secret = "keychain/generic/S/A/value"

  private func fixture() throws -> TreeFixture {
    let fixture = TreeFixture(["k": .string("one")])
    try fixture.makeItem("keychain/generic/S/A", "one\n\n")
    return fixture
  }

  private func text(of reader: Handle, from offset: Int) throws -> String {
    String(decoding: try reader.read(at: offset, count: 1000) { $0.array }, as: UTF8.self)
  }

  @Test func readerAtItsEndReadsWhatWasAdded() throws {
    let fixture = try fixture()
    for (path, first) in [("defaults/s/k", "one\n"), (Self.secret, "one\n\n")] {
      let reader = try fixture.open(path, .read)
      #expect(try reader.text() == first)
      try fixture.append(path, "two\n")
      // The bytes before its end are the same in both values.
      #expect(try text(of: reader, from: 0) == first)
      #expect(try text(of: reader, from: first.utf8.count) == "two\n")
      #expect(reader.snapshotSize == first.utf8.count + 4)
      reader.close()
    }
  }

  @Test func readerKeepsAValueThatWasReplaced() throws {
    let fixture = try fixture()
    for (path, first) in [("defaults/s/k", "one\n"), (Self.secret, "one\n\n")] {
      let reader = try fixture.open(path, .read)
      try fixture.write(path, "another, and longer\n")
      #expect(try text(of: reader, from: first.utf8.count) == "")
      #expect(try reader.text() == first)
      #expect(reader.snapshotSize == first.utf8.count)
      reader.close()
    }
  }

  @Test func readersOfOneFileReadOnTogether() throws {
    let fixture = try fixture()
    let readers = try (0..<2).map { _ in try fixture.open("defaults/s/k", .read) }
    #expect(fixture.tree.readOn(readers) == nil)
    try fixture.append("defaults/s/k", "two")
    for reader in readers { #expect(reader.isOutdated) }
    let version = try #require(fixture.tree.readOn(readers))
    for reader in readers {
      #expect(reader.version == version && !reader.isOutdated)
      #expect(try reader.text() == "one\ntwo\n")
    }
  }

  @Test func removedValueIsOutdatedAndKept() throws {
    let fixture = try fixture()
    let reader = try fixture.open("defaults/s/k", .read)
    try fixture.remove("defaults/s/k")
    #expect(reader.isOutdated)
    try fixture.write("defaults/s/k", "one\ntwo")
    #expect(fixture.tree.readOn([reader]) == nil)
    #expect(try text(of: reader, from: 4) == "")
    #expect(try reader.text() == "one\n")
  }

  @Test func statusOfARemovedFileHasWhatItsOwnProcessWrote() throws {
    let fixture = try fixture()
    let node = try fixture.node("defaults/s/k")
    let writer = try fixture.open("defaults/s/k", [.write, .truncate])
    try writer.write("x", at: 0)
    #expect(try fixture.tree.status(of: node, for: .current).size == 1)
    try fixture.remove("defaults/s/k")
    let (own, other) = (
      try fixture.tree.status(of: node, for: .current), try fixture.tree.status(of: node, for: .other)
    )
    #expect(own.size == 1 && own.links == 0)
    #expect(other.size == 4 && other.links == 0)
  }
}
