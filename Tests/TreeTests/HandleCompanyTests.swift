import Glibc
import Model
import Store
import StoreConformance
import Testing
import Tree

/// SPECIFICATION.md, section 5, for a writer in the company of others.
@Suite struct HandleCompanyTests {
  @Test func appendedBytesGoToTheEndOfTheMomentOfTheCommit() throws {
    let fixture = TreeFixture(["k": .string("one")])
    let handle = try fixture.open("defaults/s/k", .write)
    try handle.write("three\n", at: nil)
    try fixture.write("defaults/s/k", "two\n")
    try handle.finish()
    #expect(try fixture.stored("k") == .string("two\nthree"))
  }

  @Test func twoAppendersBothWin() throws {
    let fixture = TreeFixture(["k": .data([])])
    let (one, two) = (try fixture.open("defaults/s/k", .write), try fixture.open("defaults/s/k", .write))
    for round in 0..<3 {
      try one.write("a\(round)\n", at: nil)
      try two.write("b\(round)\n", at: nil)
    }
    try one.finish()
    try two.finish()
    #expect(try fixture.stored("k") == .string("a0\na1\na2\nb0\nb1\nb2"))
  }

  @Test(arguments: ["defaults/s/k", "keychain/generic/S/A/value"])
  func lastCloseWinsWhole(path: String) throws {
    let fixture = TreeFixture(["k": .string("old")])
    try fixture.makeItem("keychain/generic/S/A", "old")
    let (one, two) = (
      try fixture.open(path, [.write, .truncate]), try fixture.open(path, [.write, .truncate])
    )
    try one.write("one one one one", at: 0)
    try two.write("two", at: 0)
    try one.write(" one", at: 15)
    try two.finish()
    #expect(try fixture.read(path).hasPrefix("two"))
    try one.finish()
    #expect(try fixture.read(path).hasPrefix("one one one one one"))
  }

  @Test func appenderMayGoOnAfterACommit() throws {
    let fixture = TreeFixture(["k": .string("1")])
    let handle = try fixture.open("defaults/s/k", .write)
    try handle.write("2\n", at: nil)
    try handle.flush(by: .current)
    try handle.write("3\n", at: nil)
    try handle.finish()
    #expect(try fixture.stored("k") == .string("1\n2\n3"))
  }

  @Test func appendedBytesThatCanNotBeAValueAreRefused() throws {
    let fixture = TreeFixture(["k": .integer(1)])
    let handle = try fixture.open("defaults/s/k", .write)
    #expect(errorNumber { try handle.write("2\n", at: nil) } == EINVAL)
    handle.close()
    #expect(try fixture.stored("k") == .integer(1))
  }

  @Test func appendingAfterATruncationBeginsEmpty() throws {
    let fixture = TreeFixture(["k": .string("old")])
    let handle = try fixture.open("defaults/s/k", [.write, .truncate])
    try handle.write("new ", at: nil)
    try handle.write("text", at: nil)
    try handle.finish()
    #expect(try fixture.stored("k") == .string("new text"))
  }

  @Test func readerThatAppendsSeesBothAndLosesNothing() throws {
    let fixture = TreeFixture(["k": .string("one")])
    let handle = try fixture.open("defaults/s/k", [.read, .write])
    #expect(try handle.text() == "one\n")
    try handle.write("three\n", at: nil)
    #expect(try handle.text() == "one\nthree\n")
    try fixture.write("defaults/s/k", "two\n")
    try handle.finish()
    #expect(try fixture.stored("k") == .string("two\nthree"))
  }

  @Test func secretThatIsReadAndAppendedLosesNothing() throws {
    let fixture = TreeFixture()
    try fixture.makeItem("keychain/generic/S/A", "one\nline\n")
    let handle = try fixture.open("keychain/generic/S/A/value", [.read, .write])
    try handle.write("three\n", at: nil)
    try fixture.write("keychain/generic/S/A/value", "two\nline\n")
    try handle.finish()
    #expect(try fixture.read("keychain/generic/S/A/value") == "two\nline\nthree\n")
  }

  @Test func appenderMayRewriteWhatItAppended() throws {
    let fixture = TreeFixture(["k": .string("one")])
    let handle = try fixture.open("defaults/s/k", .write)
    try handle.write("two\n", at: nil)
    try handle.truncate(to: 6, by: .current)
    try handle.write("O", at: 0)
    try handle.finish()
    #expect(try fixture.stored("k") == .string("One\ntw"))
  }

  @Test func writerSeesItsOwnSizeAndOthersTheCommittedOne() throws {
    let fixture = TreeFixture(["k": .string("old")])
    let handle = try fixture.open("defaults/s/k", .write)
    try handle.write("longer text", at: 0)
    #expect(try fixture.status("defaults/s/k").size == 11)
    #expect(try fixture.status("defaults/s/k", for: .other).size == 4)
    try handle.flush(by: .current)
    #expect(try fixture.status("defaults/s/k", for: .other).size == 12)
    handle.close()
  }

  @Test func appenderAndTruncaterSeeTheirOwnSize() throws {
    let fixture = TreeFixture(["k": .string("old"), "l": .string("old")])
    let appender = try fixture.open("defaults/s/k", .write)
    try appender.write("12", at: nil)
    #expect(try fixture.status("defaults/s/k").size == 6)
    #expect(try fixture.status("defaults/s/k", for: .other).size == 4)
    let truncater = try fixture.open("defaults/s/l", [.write, .truncate])
    #expect(try fixture.status("defaults/s/l").size == 0)
    #expect(try fixture.status("defaults/s/l", for: .other).size == 4)
    try truncater.extend(to: 9, by: .current)
    #expect(try fixture.status("defaults/s/l").size == 9)
    try truncater.extend(to: 3, by: .current)
    #expect(try fixture.status("defaults/s/l").size == 9)
    appender.close()
    truncater.close()
  }

  @Test func declaredTypeSaysHowTheContentIsRead() throws {
    let fixture = TreeFixture(["k": .integer(1)])
    for path in ["defaults/s/new", "defaults/s/k"] {
      let handle = try fixture.create(path)
      try handle.write("007", at: 0)
      try fixture.setAttribute("user.keyhole.type", "string", path)
      try handle.finish()
    }
    #expect(try fixture.stored("new") == .string("007") && fixture.stored("k") == .string("007"))
  }

  @Test func typeDeclaredBeforeTheContentSaysHowItIsRead() throws {
    let fixture = TreeFixture(["k": .integer(1)])
    for path in ["defaults/s/new", "defaults/s/k"] {
      let handle = try fixture.create(path)
      try fixture.setAttribute("user.keyhole.type", "string", path)
      try handle.write("text", at: 0)
      try handle.finish()
    }
    #expect(try fixture.stored("new") == .string("text") && fixture.stored("k") == .string("text"))
  }

  @Test func contentThatIsNoneOfTheDeclaredTypeIsRefused() throws {
    let fixture = TreeFixture([:])
    let handle = try fixture.create("defaults/s/k")
    try handle.write("text", at: 0)
    try fixture.setAttribute("user.keyhole.type", "integer", "defaults/s/k")
    #expect(errorNumber { try handle.finish() } == EINVAL)
    #expect(try fixture.stored("k") == nil && !fixture.exists("defaults/s/k"))
  }

  @Test func timeSetBeforeTheCommitIsTheCommits() throws {
    let fixture = TreeFixture(["k": .string("old")])
    let time = Timestamp(seconds: 1_000_000_000, nanoseconds: 5)
    for path in ["defaults/s/k", "defaults/s/new"] {
      let handle = try fixture.create(path)
      try handle.write("text", at: 0)
      try fixture.tree.setModified(time, of: fixture.node(path))
      try handle.finish()
      #expect(try fixture.status(path).modified == time)
      try fixture.write(path, "other")
      #expect(try fixture.status(path).modified != time)
    }
  }

  @Test func writeAfterTheTimeWasSetMakesItNew() throws {
    let fixture = TreeFixture(["k": .string("old")])
    let time = Timestamp(seconds: 1_000_000_000)
    let handle = try fixture.create("defaults/s/k")
    try handle.write("te", at: 0)
    try fixture.tree.setModified(time, of: fixture.node("defaults/s/k"))
    try handle.write("xt", at: 2)
    try handle.finish()
    #expect(try fixture.status("defaults/s/k").modified != time)
  }

  @Test func timeAloneIsStoredAtOnceAndIsNoNews() throws {
    let fixture = TreeFixture(["k": .string("old")])
    let time = Timestamp(seconds: 1_000_000_000)
    let version = try fixture.open("defaults/s/k", .read).version
    try fixture.tree.setModified(time, of: fixture.node("defaults/s/k"))
    #expect(try fixture.status("defaults/s/k").modified == time)
    #expect(try fixture.open("defaults/s/k", .read).version == version)
  }

  @Test func equalContentKeepsTheTime() throws {
    let fixture = TreeFixture(["k": .string("same")])
    let before = try fixture.status("defaults/s/k").modified
    try fixture.write("defaults/s/k", "same\n")
    #expect(try fixture.status("defaults/s/k").modified == before)
  }
}
