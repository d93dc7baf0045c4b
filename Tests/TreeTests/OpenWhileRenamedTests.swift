import Glibc
import Model
import Store
import StoreConformance
import Testing
import Tree

/// SPECIFICATION.md, section 6, for a file that is open while it is renamed, and for names that meet.
@Suite struct OpenWhileRenamedTests {
  @Test func writerOfAKeyThatIsSetAsideWritesTheScratchFile() throws {
    let fixture = TreeFixture(["k": .integer(1)])
    let handle = try fixture.open("defaults/s/k", [.write, .truncate])
    try fixture.rename("defaults/s/k", "defaults/s/k~")
    // The scratch file is no integer.
    try handle.write("text", at: 0)
    try handle.finish()
    #expect(try fixture.read("defaults/s/k~") == "text" && fixture.stored("k") == .integer(1))
    #expect(errorNumber { try fixture.rename("defaults/s/k~", "defaults/s/k") } == EINVAL)
    try fixture.write("defaults/s/k~", "7")
    try fixture.rename("defaults/s/k~", "defaults/s/k")
    #expect(try fixture.stored("k") == .integer(7) && fixture.list("defaults/s") == ["k"])
  }

  @Test func writerThatBeganBeforeItWasSetAsideLosesNothing() throws {
    let fixture = TreeFixture(["k": .string("old")])
    let handle = try fixture.open("defaults/s/k", [.read, .write])
    try handle.write("new", at: 0)
    try fixture.rename("defaults/s/k", "defaults/s/k~")
    try handle.finish()
    #expect(try fixture.read("defaults/s/k~") == "new\n" && fixture.stored("k") == .string("old"))
    try fixture.rename("defaults/s/k~", "defaults/s/k")
    #expect(try fixture.stored("k") == .string("new"))
  }

  @Test func appenderOfAKeyThatIsSetAsideAppendsToTheScratchFile() throws {
    let fixture = TreeFixture(["k": .string("old")])
    let handle = try fixture.open("defaults/s/k", .write)
    try handle.write("er", at: nil)
    try fixture.rename("defaults/s/k", "defaults/s/k~")
    try handle.finish()
    #expect(try fixture.read("defaults/s/k~") == "old\ner")
  }

  @Test func writerOfASecretThatIsSetAsideWritesTheScratchFile() throws {
    let fixture = TreeFixture()
    try fixture.makeItem("keychain/generic/S/A", "old")
    let handle = try fixture.open("keychain/generic/S/A/value", [.write, .truncate])
    try handle.write("new", at: 0)
    try fixture.rename("keychain/generic/S/A/value", "keychain/generic/S/A/value~")
    try handle.finish()
    #expect(try fixture.read("keychain/generic/S/A/value~") == "new")
    try fixture.rename("keychain/generic/S/A/value~", "keychain/generic/S/A/value")
    #expect(try fixture.read("keychain/generic/S/A/value") == "new")
  }

  @Test func newFileThatIsSetAsideBeforeItsFirstCommitKeepsItsContent() throws {
    let fixture = TreeFixture([:])
    let handle = try fixture.create("defaults/s/k")
    try handle.write("text", at: 0)
    try fixture.rename("defaults/s/k", "defaults/s/k~")
    try handle.finish()
    #expect(try fixture.read("defaults/s/k~") == "text" && fixture.list("defaults/s") == ["k~"])
    #expect(try fixture.stored("k") == nil)
  }

  @Test func scratchThatBecameAValueAndIsSetAsideAgainKeepsWhatItsWriterWrites() throws {
    let fixture = TreeFixture(["k": .string("old")])
    let handle = try fixture.create("defaults/s/.x")
    try handle.write("new", at: 0)
    try fixture.rename("defaults/s/.x", "defaults/s/k")
    try fixture.rename("defaults/s/k", "defaults/s/k~")
    try handle.write("er", at: nil)
    try handle.finish()
    #expect(try fixture.read("defaults/s/k~") == "newer" && fixture.stored("k") == .string("new"))
  }

  @Test func anotherValueThatIsSetAsideUnderTheSameNameReplacesTheFirst() throws {
    let fixture = TreeFixture(["a": .string("1"), "b": .string("2")])
    try fixture.rename("defaults/s/a", "defaults/s/x~")
    try fixture.rename("defaults/s/b", "defaults/s/x~")
    // As in any folder: the file that was `a` is gone, and `a` is free.
    #expect(try fixture.stored("a") == nil && fixture.stored("b") == .string("2"))
    #expect(try fixture.list("defaults/s") == ["x~"])
    fixture.suites.replace("s", with: ["a": .string("3"), "b": .string("2")])
    #expect(try fixture.read("defaults/s/a") == "3\n")
  }

  @Test func scratchRenamedOverWhatIsSetAsideReplacesIt() throws {
    let fixture = TreeFixture(["a": .string("1")])
    try fixture.rename("defaults/s/a", "defaults/s/x~")
    try fixture.write("defaults/s/.y", "2")
    try fixture.rename("defaults/s/.y", "defaults/s/x~")
    #expect(try fixture.stored("a") == nil && fixture.read("defaults/s/x~") == "2")
  }

  @Test func valueIsBackWhenBothItsBackupAndTheNewOneAreDropped() throws {
    let fixture = TreeFixture(["k": .integer(1)])
    try fixture.rename("defaults/s/k", "defaults/s/k~")
    let handle = try fixture.create("defaults/s/k")
    #expect(errorNumber { try handle.write("text", at: 0) } == nil)
    try fixture.remove("defaults/s/k~")
    #expect(errorNumber { try handle.finish() } == EINVAL)
    #expect(try fixture.read("defaults/s/k") == "1\n" && fixture.list("defaults/s") == ["k"])
  }

  @Test func keyOfAScratchFilesNameIsShownOnce() throws {
    let fixture = TreeFixture(["k": .string("1")])
    try fixture.write("defaults/s/x~", "scratch")
    fixture.suites.replace("s", with: ["k": .string("1"), "x~": .string("key")])
    #expect(try fixture.list("defaults/s") == ["k", "x~"])
    #expect(try fixture.read("defaults/s/x~") == "scratch")
    try fixture.write("defaults/s/x~", "more")
    #expect(try fixture.stored("x~") == .string("key") && fixture.read("defaults/s/x~") == "more")
    try fixture.remove("defaults/s/x~")
    #expect(try fixture.read("defaults/s/x~") == "key\n" && fixture.list("defaults/s") == ["k", "x~"])
  }

  @Test func timeAndTypeSetOnScratchThatIsOpenAreKept() throws {
    let fixture = TreeFixture([:])
    let time = Timestamp(seconds: 1_000_000_000, nanoseconds: 7)
    let handle = try fixture.create("defaults/s/.x")
    try handle.write("42", at: 0)
    try fixture.tree.setModified(time, of: handle.node)
    try fixture.setAttribute("user.keyhole.type", "string", "defaults/s/.x")
    #expect(try fixture.status("defaults/s/.x").modified == time)
    try fixture.rename("defaults/s/.x", "defaults/s/k")
    try handle.finish()
    #expect(try fixture.stored("k") == .string("42") && fixture.status("defaults/s/k").modified == time)
  }

  @Test func timeAndTypeSetAfterTheRenameAreKept() throws {
    let fixture = TreeFixture([:])
    let time = Timestamp(seconds: 1_000_000_000, nanoseconds: 7)
    let handle = try fixture.create("defaults/s/.x")
    try handle.write("42", at: 0)
    try fixture.rename("defaults/s/.x", "defaults/s/k")
    try fixture.setAttribute("user.keyhole.type", "real", "defaults/s/k")
    try fixture.tree.setModified(time, of: handle.node)
    #expect(try fixture.stored("k") == .real(42) && fixture.status("defaults/s/k").modified == time)
    // There is nothing left to commit.
    #expect(!handle.isDirty)
    try handle.finish()
    #expect(try fixture.stored("k") == .real(42) && fixture.status("defaults/s/k").modified == time)
  }

  @Test func timeAndTypeSetAfterALaterWriteAreTheCommits() throws {
    let fixture = TreeFixture([:])
    let time = Timestamp(seconds: 1_000_000_000, nanoseconds: 7)
    let handle = try fixture.create("defaults/s/.x")
    try handle.write("42", at: 0)
    try fixture.setAttribute("user.keyhole.type", "string", "defaults/s/.x")
    try fixture.rename("defaults/s/.x", "defaults/s/k")
    try handle.write("3", at: nil)
    #expect(try fixture.tree.status(of: handle.node, for: .current).size == 3)
    try fixture.setAttribute("user.keyhole.type", "integer", "defaults/s/k")
    try fixture.tree.setModified(time, of: handle.node)
    try handle.finish()
    #expect(try fixture.stored("k") == .integer(423) && fixture.status("defaults/s/k").modified == time)
  }

  @Test func writerLearnsOfAnotherType() throws {
    let fixture = TreeFixture(["k": .string("1"), "d": .integer(5)])
    let handle = try fixture.open("defaults/s/k", [.write, .truncate])
    try handle.write("7", at: 0)
    try handle.flush(by: .current)
    try fixture.setAttribute("user.keyhole.type", "integer", "defaults/s/k")
    try handle.write("a", at: 1)
    #expect(errorNumber { try handle.finish() } == EINVAL)
    let other = try fixture.open("defaults/s/d", [.write, .truncate])
    try other.write("7", at: 0)
    try other.flush(by: .current)
    fixture.suites.replace("s", with: ["d": .string("text")])
    _ = try fixture.read("defaults/s/d")
    try other.write("a", at: 1)
    try other.finish()
    #expect(try fixture.stored("d") == .string("7a"))
  }
}

/// Rules that say who may have a secret must not come in by a way round the check of setxattr(2).
@Suite struct RuleTests {
  static let rules = [("user.keyhole.programs", "deny *\n"), ("user.keyhole.access", "userPresence")]

  @Test(arguments: rules)
  func ruleOnScratchIsCheckedWhenItBecomesAValue(name: String, value: String) throws {
    let fixture = TreeFixture()
    try fixture.makeItem("keychain/generic/S/A", "old")
    let before = try fixture.onlyItem()
    try fixture.write("keychain/generic/S/A/x", "new")
    try fixture.setAttribute(name, "nonsense", "keychain/generic/S/A/x")
    let move = { try fixture.rename("keychain/generic/S/A/x", "keychain/generic/S/A/value") }
    #expect(errorNumber(move) == EINVAL)
    #expect(try fixture.read("keychain/generic/S/A/value") == "old" && fixture.onlyItem() == before)
    try fixture.setAttribute(name, value, "keychain/generic/S/A/x")
    try move()
    #expect(try fixture.attribute(name, "keychain/generic/S/A") == value)
    // No prompt is available here.
    #expect(errorNumber { _ = try fixture.read("keychain/generic/S/A/value") } == EACCES)
  }

  @Test(arguments: rules)
  func stagedItemTakesItsRulesAlong(name: String, value: String) throws {
    let fixture = TreeFixture()
    try fixture.makeDirectories("keychain/generic/S/A")
    #expect(errorNumber { try fixture.setAttribute(name, "nonsense", "keychain/generic/S/A") } == EINVAL)
    try fixture.setAttribute(name, value, "keychain/generic/S/A")
    let writer = try fixture.create("keychain/generic/S/A/value")
    // Each of two closes of a handle is a commit.
    for text in ["ne", "new"] {
      try writer.write(text, at: 0)
      try writer.flush(by: .current)
    }
    try writer.finish()
    #expect(try fixture.attribute(name, "keychain/generic/S/A") == value)
    #expect(errorNumber { _ = try fixture.read("keychain/generic/S/A/value") } == EACCES)
    #expect(errorNumber { try fixture.removeAttribute(name, "keychain/generic/S/A") } == EACCES)
  }
}
