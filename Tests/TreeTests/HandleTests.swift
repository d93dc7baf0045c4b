import Glibc
import Model
import Platform
import Store
import StoreConformance
import Testing
import Tree

/// SPECIFICATION.md, section 5, for a writer alone.
@Suite struct HandleTests {
  @Test func valueChangesAtOnceAtTheClose() throws {
    let fixture = TreeFixture(["k": .string("old")])
    let handle = try fixture.open("defaults/s/k", .write)
    try handle.write("ne", at: 0)
    try handle.write("w text", at: 2)
    #expect(try fixture.read("defaults/s/k") == "old\n" && handle.isDirty)
    try handle.flush(by: .current)
    #expect(try fixture.read("defaults/s/k") == "new text\n" && !handle.isDirty)
    handle.close()
  }

  @Test func valueChangesAtFsync() throws {
    let fixture = TreeFixture(["k": .string("old")])
    let handle = try fixture.open("defaults/s/k", [.write, .truncate])
    try handle.synchronize()
    #expect(try fixture.stored("k") == .string(""))
    try handle.write("new", at: 0)
    try handle.synchronize()
    #expect(try fixture.stored("k") == .string("new"))
    handle.close()
  }

  @Test func eachCloseOfACopyCommitsWhatWasWrittenSoFar() throws {
    let fixture = TreeFixture(["k": .string("old")])
    let handle = try fixture.open("defaults/s/k", [.write, .truncate])
    try handle.write("one", at: 0)
    try handle.flush(by: .current)
    #expect(try fixture.stored("k") == .string("one"))
    try handle.write(" two", at: 3)
    try handle.flush(by: .other)
    #expect(try fixture.stored("k") == .string("one two"))
    handle.close()
  }

  @Test func copyClosedBeforeAnythingIsWrittenCommitsNothing() throws {
    let fixture = TreeFixture(["k": .string("old")])
    let handle = try fixture.open("defaults/s/k", [.write, .truncate])
    try handle.flush(by: .current)
    #expect(try fixture.stored("k") == .string("old"))
    handle.close()
    #expect(try fixture.stored("k") == .string(""))
  }

  @Test func refusedContentStaysForTheWritersThatHaveIt() throws {
    let fixture = TreeFixture(["k": .dictionary(["a": .integer(1)])])
    let handle = try fixture.open("defaults/s/k", [.write, .truncate])
    try handle.write("{\"a\":", at: 0)
    #expect(errorNumber { try handle.flush(by: .current) } == EINVAL)
    #expect(try fixture.stored("k") == .dictionary(["a": .integer(1)]))
    try handle.write(" 2}", at: 5)
    try handle.finish()
    #expect(try fixture.stored("k") == .dictionary(["a": .integer(2)]))
  }

  @Test func refusedContentThatNobodyMendsIsDropped() throws {
    let fixture = TreeFixture(["k": .array([])])
    let handle = try fixture.open("defaults/s/k", [.write, .truncate])
    try handle.write("[1", at: 0)
    #expect(errorNumber { try handle.finish() } == EINVAL)
    #expect(try fixture.stored("k") == .array([]))
  }

  @Test(arguments: [
    (SettingValue.integer(1), "abc"), (.integer(1), "1 2"), (.real(1), "1.5x"), (.bool(true), "maybe"),
    (.date(0), "tomorrow"), (.string(""), "a\0b"), (.array([]), "{"), (.dictionary([:]), "[1]"),
    (.dictionary([:]), "null"), (.integer(1), "99999999999999999999"),
  ])
  func hopelessContentIsRefusedByTheWrite(value: SettingValue, text: String) throws {
    let fixture = TreeFixture(["k": value])
    for mode in [OpenMode.write, [.write, .truncate]] {
      let handle = try fixture.open("defaults/s/k", mode)
      if !mode.contains(.truncate) { try handle.truncate(to: 0, by: .current) }
      #expect(errorNumber { try handle.write(text, at: 0) } == EINVAL)
      #expect(errorNumber { try handle.flush(by: .current) } == EINVAL)
      #expect(errorNumber { try handle.synchronize() } == EINVAL)
      handle.close()
      #expect(try fixture.stored("k") == value)
    }
  }

  /// The beginning of a value: write(2) takes it, and only fsync(2) and close(2) can report that the rest is missing.
  @Test(arguments: [
    (SettingValue.integer(1), "-"), (.integer(1), " "), (.real(1), "1e"), (.bool(true), "t"),
    (.bool(true), "tr"),
    (.date(0), "2026-11-21"), (.array([]), "[1,"), (.dictionary([:]), "{\"a\":"),
    (.dictionary([:]), "<plist"),
    (.dictionary([:]), "<?xml version=\"1.0\"?>\n<plist><dict>"),
  ])
  func unfinishedContentIsRefusedByTheCommit(value: SettingValue, text: String) throws {
    let fixture = TreeFixture(["k": value])
    let handle = try fixture.open("defaults/s/k", [.write, .truncate])
    try handle.write(text, at: 0)
    #expect(errorNumber { try handle.synchronize() } == EINVAL)
    #expect(errorNumber { try handle.finish() } == EINVAL)
    #expect(try fixture.stored("k") == value)
  }

  @Test func openingToWriteAndClosingChangesNothing() throws {
    let fixture = TreeFixture(["k": .string("old")])
    try fixture.makeItem("keychain/generic/S/A", "old")
    for path in ["defaults/s/k", "keychain/generic/S/A/value"] {
      let (text, status) = (try fixture.read(path), try fixture.status(path))
      for mode: OpenMode in [.write, [.read, .write]] { try fixture.open(path, mode).finish() }
      #expect(try fixture.read(path) == text && fixture.status(path).modified == status.modified)
    }
  }

  @Test func failedWriteSpoilsTheHandle() throws {
    let fixture = TreeFixture(["k": .integer(1)])
    let handle = try fixture.open("defaults/s/k", [.write, .truncate])
    try handle.write("2", at: 0)
    #expect(errorNumber { try handle.write("x", at: 1) } == EINVAL)
    #expect(errorNumber { try handle.write("3", at: 0) } == EINVAL)
    #expect(errorNumber { try handle.truncate(to: 1, by: .current) } == EINVAL)
    #expect(errorNumber { try handle.finish() } == EINVAL)
    #expect(try fixture.stored("k") == .integer(1))
  }

  @Test func truncationTakesEffectAtTheClose() throws {
    let fixture = TreeFixture(["k": .string("long text")])
    let handle = try fixture.open("defaults/s/k", .write)
    try handle.truncate(to: 4, by: .current)
    #expect(try fixture.stored("k") == .string("long text"))
    try handle.finish()
    #expect(try fixture.stored("k") == .string("long"))
  }

  @Test(arguments: [SettingValue.integer(1), .real(1), .bool(true), .date(0), .array([]), .dictionary([:])])
  func truncationAloneIsRefusedWhereTheTypeCanNotBeEmpty(value: SettingValue) throws {
    let fixture = TreeFixture(["k": value])
    let handle = try fixture.open("defaults/s/k", [.write, .truncate])
    #expect(errorNumber { try handle.synchronize() } == EINVAL)
    #expect(errorNumber { try handle.flush(by: .current) } == nil)
    handle.close()
    #expect(try fixture.stored("k") == value)
    #expect(
      errorNumber { try fixture.tree.truncate(fixture.node("defaults/s/k"), to: 0, by: .current) } == EINVAL)
    #expect(try fixture.stored("k") == value)
  }

  @Test func truncationByPathActsAtOnce() throws {
    let fixture = TreeFixture(["k": .string("long text"), "d": .data([1, 2, 3])])
    try fixture.tree.truncate(fixture.node("defaults/s/k"), to: 4, by: .current)
    #expect(try fixture.stored("k") == .string("long"))
    try fixture.tree.truncate(fixture.node("defaults/s/d"), to: 5, by: .current)
    #expect(try fixture.stored("d") == .data([1, 2, 3, 0, 0]))
    try fixture.tree.truncate(fixture.node("defaults/s/k"), to: 0, by: .current)
    #expect(try fixture.stored("k") == .string(""))
  }

  @Test func gapReadsAsZeros() throws {
    let fixture = TreeFixture(["d": .data([1])])
    let handle = try fixture.open("defaults/s/d", .write)
    try handle.write("x", at: 3)
    try handle.finish()
    #expect(try fixture.stored("d") == .data([1, 0, 0, 0x78]))
  }

  @Test func limitIsSixteenMebibytes() throws {
    let fixture = TreeFixture(["d": .data([1])])
    let handle = try fixture.open("defaults/s/d", .write)
    #expect(errorNumber { try handle.truncate(to: (16 << 20) + 1, by: .current) } == EFBIG)
    #expect(errorNumber { try handle.write("xy", at: (16 << 20) - 1) } == EFBIG)
    #expect(errorNumber { try handle.finish() } == EFBIG)
    #expect(try fixture.stored("d") == .data([1]))
    let appending = try fixture.open("defaults/s/d", .write)
    let most = String(repeating: "x", count: (16 << 20) - 1)
    try appending.write(most, at: nil)
    #expect(errorNumber { try appending.write("x", at: nil) } == EFBIG)
    appending.close()
    try fixture.append("defaults/s/d", most)
    #expect(try fixture.status("defaults/s/d").size == 16 << 20)
  }

  @Test(arguments: [
    (StoreError.noSpace, ENOSPC), (.readOnly(reason: ""), EROFS), (.unreachable(reason: ""), EIO),
    (.system(.EIO, operation: "fsync"), EIO),
  ])
  func storesErrorIsTheClosesError(error: StoreError, number: Int32) throws {
    let fixture = TreeFixture(["k": .integer(1)])
    let handle = try fixture.open("defaults/s/k", [.write, .truncate])
    try handle.write("2", at: 0)
    fixture.suites.refuse(error)
    #expect(errorNumber { try handle.flush(by: .current) } == number)
    #expect(try fixture.stored("k") == .integer(1))
    fixture.suites.refuse(nil)
    try handle.finish()
    #expect(try fixture.stored("k") == .integer(2))
  }

  @Test func whatFailedIsNotStoredByTheLastClose() throws {
    let fixture = TreeFixture(["k": .integer(1)])
    let handle = try fixture.open("defaults/s/k", [.write, .truncate])
    try handle.write("2", at: 0)
    fixture.suites.refuse(.noSpace)
    #expect(errorNumber { try handle.flush(by: .current) } == ENOSPC)
    fixture.suites.refuse(nil)
    handle.close()
    #expect(try fixture.stored("k") == .integer(1))
  }

  @Test func readerKeepsWhatItOpened() throws {
    let fixture = TreeFixture(["k": .string("old")])
    let reader = try fixture.open("defaults/s/k", .read)
    try fixture.write("defaults/s/k", "new")
    #expect(try reader.text() == "old\n" && fixture.read("defaults/s/k") == "new\n")
    #expect(try reader.version != fixture.open("defaults/s/k", .read).version)
  }

  @Test func readsAreCutAtTheEnd() throws {
    let fixture = TreeFixture(["k": .string("text")])
    let reader = try fixture.open("defaults/s/k", .read)
    for (offset, count, text) in [(0, 2, "te"), (3, 9, "t\n"), (5, 1, ""), (99, 1, ""), (0, 0, "")] {
      let read = try reader.read(at: offset, count: count) {
        String(decoding: $0.array, as: UTF8.self)
      }
      #expect(read == text)
    }
  }
}
