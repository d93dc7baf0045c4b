import Glibc
import Model
import Store
import Testing

@testable import Suites

/// The values that keys had: kept in the state folder, for so long and so many, and never more than so much.
@Suite(.timeLimit(.minutes(2))) struct SettingHistoryTests {
  let sandbox = SuiteSandbox()

  private var history: String { sandbox.state + "/history" }

  /// Another process each time.
  private func engine(_ retention: HistoryRetention? = .standard) -> PropertyListFolder {
    PropertyListFolder(folder: sandbox.folder, stateFolder: sandbox.state, retention: retention)
  }

  private func set(_ value: SettingValue?, _ key: ExactString = "k", in suite: ExactString = "a") throws {
    try engine().set(key, value, in: suite)
  }

  private func values(_ key: ExactString = "k", in suite: ExactString = "a") -> [SettingValue] {
    engine().versions(of: suite).filter { $0.key == key }.map(\.value)
  }

  init() throws {
    _ = try engine().create("a")
  }

  @Test func replacedAndRemovedValuesAreKept() throws {
    try set(.integer(1))
    #expect(values().isEmpty)
    try set(.string("two"))
    try set(nil)
    try set(.bool(true), "other")
    let versions = engine().versions(of: "a")
    #expect(versions.map(\.value) == [.integer(1), .string("two")])
    #expect(versions.map(\.changes) == [.value, .removal])
    #expect(versions[0].number < versions[1].number)
    #expect(engine().suitesWithVersions() == ["a"])
    for name in sandbox.names(history) {
      var status = stat()
      #expect(unsafe stat(history + "/" + name, &status) == 0 && status.st_mode & 0o777 == 0o600)
    }
    var status = stat()
    #expect(unsafe stat(history, &status) == 0 && status.st_mode & 0o777 == 0o700)
  }

  @Test func valuesOfAllTypesComeBack() throws {
    let values: [SettingValue] = [
      .real(.nan), .data([0, 1]), .date(try #require(SettingDate(sinceReference: 2.5))), .uid(7),
      .string("\u{1}"), .integer(Int128(UInt64.max)),
      .array([.bool(true), .dictionary(["x": .real(0.5)])]), .dictionary([:]), .string("last"),
    ]
    for value in values { try set(value) }
    #expect(self.values() == Array(values.dropLast()))
  }

  /// `rm --purge`: between its steps, and after them, no process keeps the key's value.
  @Test func removalForGoodLeavesNothingWhicheverProcessNoticesIt() throws {
    for value in ["old", "new"] { try set(.string(ExactString(value))) }
    try set(.integer(1), "other")
    #expect(try engine().purge(["k"], beforeRemovalFrom: "a") == 1)
    // Killed here, the key is as it was, without versions.
    #expect(values().isEmpty)
    #expect(try engine().read("a")?.settings["k"]?.value == .string("new"))
    try set(nil)
    // Killed here, a mount notices the removal.
    engine().keep(["k": .string("new")], of: "a", removed: ["k"])
    #expect(values().isEmpty)
    for name in sandbox.names(history) {
      #expect(!sandbox.text(history + "/" + name).contains("new"), "\(name)")
    }
    // Other keys are kept.
    try set(.integer(2), "other")
    #expect(values("other") == [.integer(1)])
  }

  /// A value that is stored after `rm --purge` is kept when it is replaced; the purged one is not, though a mount may see it late.
  @Test func valueStoredAfterARemovalForGoodIsKept() throws {
    try set(.string("old"))
    try engine().purge(["k"], beforeRemovalFrom: "a")
    try set(nil)
    try set(.string("first"))
    engine().keep(["k": .string("old")], of: "a", removed: [])
    try set(.string("second"))
    try set(nil)
    #expect(values().contains(.string("first")))
    #expect(!values().contains(.string("old")))
  }

  @Test func removalForGoodCountsForTenSeconds() throws {
    try set(.string("old"))
    try engine().purge(["k"], beforeRemovalFrom: "a")
    let mark = try #require(sandbox.names(history).first { $0.hasSuffix(".purged") })
    var bytes = sandbox.bytes(history + "/" + mark)
    // Eleven seconds ago.
    let time = (Timestamp.now.seconds - 11) * 1_000_000_000
    for index in 0..<8 { bytes[index] = UInt8(truncatingIfNeeded: time >> Int64(8 * index)) }
    sandbox.write(bytes, to: history + "/" + mark)
    try set(.string("new"))
    #expect(values() == [.string("old")])
    engine().prune()
    #expect(!sandbox.names(history).contains(mark))
  }

  @Test func onlySoManyOfAKeyAndNoneThatIsTooOld() throws {
    for number in 0..<15 as Range<Int128> { try set(.integer(number)) }
    #expect(values() == (4..<14).map { .integer($0) })
    let all = KeptVersions(
      SettingHistoryFiles(folder: history, retention: .standard).versions(of: "a"),
      HistoryRetention(versions: 3, days: 1), at: .now)
    #expect(all.records.count == 3)
    let later = Timestamp(seconds: Timestamp.now.seconds + 2 * 86_400)
    #expect(KeptVersions(all.records, HistoryRetention(versions: 3, days: 1), at: later).records.isEmpty)
  }

  @Test func aSeriesByOneProcessIsOneVersion() throws {
    let engine = engine()
    for number in 0..<50 as Range<Int128> { try engine.set("k", .integer(number), in: "a") }
    let kept = values()
    #expect(kept.first == .integer(0) && kept.count < 25, "\(kept.count)")
  }

  /// A mount changes a key for one program after another.
  @Test func changesForSeveralProcessesAreAVersionEach() throws {
    let engine = engine()
    for number in 0..<6 as Range<Int128> {
      _ = try engine.update("a", known: nil) { contents in
        contents.settings["k"] = Setting(.integer(number))
        contents.writer = Int32(1000 + number % 2)
      }
    }
    #expect(values() == (0..<5).map { .integer($0) })
  }

  @Test func outdatedValuesAreDeletedFromTheFiles() throws {
    try set(.string("a marker of one"))
    try set(.integer(2))
    #expect(engine().prune() == 0)
    #expect(engine(HistoryRetention(versions: 0, days: 30)).prune() == 1)
    #expect(!sandbox.names(history).contains { sandbox.text(history + "/" + $0).contains("a marker of one") })
    try set(.integer(3))
    #expect(values() == [.integer(2)])
  }

  @Test func largeValuesAreLeftOut() throws {
    try set(.data([UInt8](repeating: 1, count: SettingHistoryFiles.largestValue)))
    try set(.integer(1))
    try set(.integer(2))
    #expect(values() == [.integer(1)])
  }

  @Test func aSeriesOfLargeSuitesIsKeptToo() throws {
    _ = try engine().update("a", known: nil) { contents in
      for number in 0..<9000 {
        contents.settings[ExactString("key \(number)")] = Setting(.string("a value of some length"))
      }
    }
    try set(.integer(1), "key 7")
    try set(.integer(2), "key 7")
    #expect(values("key 7") == [.string("a value of some length"), .integer(1)])
  }

  @Test func withoutRetentionNothingIsAdded() throws {
    try set(.integer(1))
    try set(.integer(2))
    for retention in [nil, HistoryRetention.none] { try engine(retention).set("k", .integer(3), in: "a") }
    #expect(values() == [.integer(1)])
  }

  @Test func purgedValuesLeaveNoResidue() throws {
    let marker = "a marker that is looked for"
    for value in [marker, "x"] { try set(.string(ExactString(value))) }
    for value in 0..<3 as Range<Int128> { try set(.integer(value), "other") }
    let before = sandbox.names(history)
    #expect(before.contains { sandbox.text(history + "/" + $0).contains(marker) })
    #expect(try engine().purge("a", "k") == 1)
    #expect(!sandbox.names(history).contains { sandbox.text(history + "/" + $0).contains(marker) })
    #expect(values("other") == [.integer(0), .integer(1)])
    try set(.integer(9), "other")
    #expect(values("other") == [.integer(0), .integer(1), .integer(2)])
    #expect(try engine().purge("a", nil) == 3)
    #expect(engine().versions(of: "a").isEmpty && engine().suitesWithVersions().isEmpty)
  }

  @Test func aSuiteIsSwitchedOffAndOn() throws {
    try set(.integer(1))
    try set(.integer(2))
    try engine().setKeepsVersions(false, of: "a")
    #expect(values().isEmpty && !engine().keepsVersions(of: "a"))
    try set(.integer(3))
    #expect(values().isEmpty)
    try engine().setKeepsVersions(true, of: "a")
    try set(.integer(4))
    #expect(values() == [.integer(3)])
  }

  @Test func aSuiteThatIsRenamedStaysSwitchedOff() throws {
    try set(.integer(1))
    try engine().setKeepsVersions(false, of: "a")
    try engine().rename("a", to: "b")
    #expect(engine().keepsVersions(of: "a") && !engine().keepsVersions(of: "b"))
    try set(.integer(2), in: "b")
    #expect(values(in: "b").isEmpty)
  }

  /// A suite that another program has removed leaves its mark.
  @Test func aSuiteGetsNoMarkWithAName() throws {
    try engine().setKeepsVersions(false, of: "b")
    try set(.integer(1))
    try engine().rename("a", to: "b")
    try set(.integer(2), in: "b")
    #expect(engine().keepsVersions(of: "b") && values(in: "b") == [.integer(1)])
  }

  @Test func aMarkIsRemovedWithItsSuite() throws {
    try set(.integer(1))
    try engine().setKeepsVersions(false, of: "a")
    try set(nil)
    try engine().remove("a")
    #expect(engine().keepsVersions(of: "a"))
    #expect(!sandbox.names(history).contains { $0.hasSuffix(SettingHistoryFiles.off) })
    // A mount notices the removal after the mark has gone.
    engine().keep(["k": .integer(1)], of: "a", removed: ["k"])
    #expect(values().isEmpty)
  }

  @Test func theFolderIsLimitedOldestFirst() throws {
    let files = SettingHistoryFiles(folder: history, retention: .standard, largestFolder: 1 << 20)
    let text = String(repeating: "x", count: 30_000)
    for suite in ["old", "middle", "new"] as [ExactString] {
      for number in 0..<20 {
        let former = FormerValue(
          key: ExactString("k\(number)"), value: .string(ExactString(text)), changes: .value)
        files.record([former], of: suite, at: .now, by: 1)
      }
      // The times of the files say which is older.
      for name in sandbox.names(history) where name.hasPrefix("old") {
        let times = [timespec(tv_sec: 1000, tv_nsec: 0), timespec(tv_sec: 1000, tv_nsec: 0)]
        unsafe utimensat(AT_FDCWD, history + "/" + name, times, 0)
      }
    }
    let size = sandbox.names(history).reduce(0) { $0 + sandbox.bytes(history + "/" + $1).count }
    #expect(size <= (1 << 20) + SettingHistoryFiles.largestFile, "\(size)")
    #expect(files.versions(of: "old").isEmpty)
    #expect(!files.versions(of: "new").isEmpty)
  }

  @Test func aCutOffRecordIsWrittenOver() throws {
    for number in 0..<3 as Range<Int128> { try set(.integer(number)) }
    let file = history + "/" + (sandbox.names(history).first ?? "")
    let whole = sandbox.bytes(file)
    for length in [whole.count - 1, whole.count / 2 + 3, 5] {
      sandbox.write(whole[..<length], to: file)
      try set(.integer(7))
      try set(.integer(8))
      #expect(values().last == .integer(7))
    }
    sandbox.write([UInt8](repeating: 0xFF, count: 300), to: file)
    #expect(values().isEmpty)
    try set(.integer(9))
    #expect(values() == [.integer(8)])
  }

  @Test func itFollowsARename() throws {
    try set(.integer(1))
    try set(.integer(2))
    try engine().rename("a", to: "b")
    #expect(values().isEmpty && values(in: "b") == [.integer(1)])
    #expect(engine().suitesWithVersions() == ["b"])
    try set(.integer(3), in: "b")
    #expect(values(in: "b") == [.integer(1), .integer(2)])
  }

  @Test func whatOtherProgramsReplaceIsKeptOnce() throws {
    let follower = SettingsStore(engine: engine(), keepsForeignVersions: true)
    try set(.integer(1))
    #expect(try follower.suite("a").fetch() != nil)
    // One that keeps it itself.
    try set(.integer(2))
    follower.refresh("a")
    #expect(values() == [.integer(1)])
    sandbox.write(plist("<key>k</key><integer>3</integer>"), to: sandbox.path("a"))
    follower.refresh("a")
    #expect(values() == [.integer(1), .integer(2)])
    sandbox.write(plist(""), to: sandbox.path("a"))
    follower.refresh("a")
    #expect(engine().versions(of: "a").last?.changes == .removal)
    try follower.restore([try #require(engine().versions(of: "a").last)], in: "a")
    #expect(try engine().values("a") == ["k": .integer(3)])
  }

  @Test func aFolderThatCantBeMadeKeepsNoSettingFromBeingStored() throws {
    sandbox.write("", to: sandbox.root + "/file")
    let engine = PropertyListFolder(
      folder: sandbox.folder, stateFolder: sandbox.root + "/file", retention: .standard)
    try engine.set("k", .integer(1), in: "a")
    try engine.set("k", .integer(2), in: "a")
    #expect(try engine.values("a") == ["k": .integer(2)] && engine.versions(of: "a").isEmpty)
  }
}
