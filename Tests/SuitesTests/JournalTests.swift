import Dispatch
import Glibc
import Model
import Store
import StoreConformance
import TestSupport
import Testing

@testable import Suites

/// Commits that go into a journal first. Nothing is folded by itself here, unless a test says so.
@Suite(.timeLimit(.minutes(2))) struct JournalTests {
  let sandbox = SuiteSandbox()

  private func engine(
    foldingAfter delay: DispatchTimeInterval = .never, removingAfter removal: DispatchTimeInterval = .never
  ) -> PropertyListFolder {
    PropertyListFolder(
      folder: sandbox.folder, stateFolder: sandbox.state, journalsFrom: 0, foldingAfter: delay,
      removingAfter: removal)
  }

  private var journal: String { sandbox.folder + "/.a.plist.journal" }
  private var file: String { sandbox.path("a") }

  private func suite(_ values: [ExactString: SettingValue]) throws -> PropertyListFolder {
    let engine = engine()
    _ = try engine.create("a")
    _ = try engine.update("a", known: nil) { contents in
      for (key, value) in values { contents.settings[key] = Setting(value) }
    }
    try engine.fold("a")
    return engine
  }

  private func modified() -> timespec {
    var status = stat()
    _ = unsafe stat(file, &status)
    return status.st_mtim
  }

  private var hasJournal: Bool { unsafe access(journal, F_OK) == 0 }

  private func setTime(_ time: timespec, of path: String) throws {
    try #require(unsafe utimensat(AT_FDCWD, path, [time, time], 0) == 0)
  }

  /// Writes in place, as a program with Foundation does, `seconds` after the last write.
  private func writeElsewhere(_ values: [String: String], secondsLater: Int = 1) throws {
    let time = timespec(tv_sec: modified().tv_sec + secondsLater, tv_nsec: 0)
    let body = values.sorted { $0.key < $1.key }.map { "<key>\($0)</key><string>\($1)</string>" }
    sandbox.write(plist(body.joined()), to: file)
    try setTime(time, of: file)
  }

  @Test(arguments: SuiteEngineConformance.cases)
  func engineKeepsTheProtocol(_ test: SuiteEngineConformance.Case) throws {
    try test.run(engine())
  }

  @Test(arguments: SuiteEngineConformance.cases)
  func engineThatFoldsAtOnceKeepsTheProtocol(_ test: SuiteEngineConformance.Case) throws {
    // A fold changes the stamp, and no value.
    let withStamps = ["an update that throws changes nothing", "an equal value is no write"]
    guard !withStamps.contains(test.description), !test.description.hasPrefix("a time can be set") else {
      return
    }
    try test.run(engine(foldingAfter: .nanoseconds(1), removingAfter: .nanoseconds(1)))
  }

  @Test func commitIsAppendedAndTheFileFollows() throws {
    let engine = try suite(["k": .string("old"), "l": .integer(1)])
    let before = sandbox.bytes(file)
    try engine.set("k", .string("new"), in: "a")
    try engine.set("l", nil, in: "a")
    #expect(sandbox.bytes(file) == before)
    #expect(try engine.values("a") == ["k": .string("new")])
    #expect(try self.engine().values("a") == ["k": .string("new")])
    try engine.fold("a")
    #expect(sandbox.text(file) == plist("\t<key>k</key>\n\t<string>new</string>"))
    #expect(try self.engine().values("a") == ["k": .string("new")])
  }

  @Test func timesAreThoseOfTheCommits() throws {
    let engine = try suite(["k": .string("old"), "l": .integer(1)])
    let contents = try engine.set("k", .string("new"), in: "a")
    let times = contents.settings.mapValues(\.modified).dictionary
    #expect(try self.engine().read("a")?.settings.mapValues(\.modified).dictionary == times)
    try engine.fold("a")
    #expect(try self.engine().read("a")?.settings.mapValues(\.modified).dictionary == times)
  }

  /// As cp -a, tar and rsync set it, right after they have written.
  @Test func timeThatIsSetIsKept() throws {
    let engine = try suite(["k": .string("old"), "l": .integer(1)])
    try engine.set("k", .string("new"), in: "a")
    let time = Timestamp(seconds: 1_000_000_000, nanoseconds: 5)
    _ = try engine.update("a", known: nil) { contents in
      contents.settings["k"]?.modified = time
      contents.settings["l"]?.modified = time
      contents.settings["m"] = Setting(.bool(true), modified: time)
    }
    let expected: [ExactString: Timestamp?] = ["k": time, "l": time, "m": time]
    #expect(try self.engine().read("a")?.settings.mapValues(\.modified).dictionary == expected)
    try engine.fold("a")
    #expect(try self.engine().read("a")?.settings.mapValues(\.modified).dictionary == expected)
    _ = try engine.update("a", known: nil) { $0.settings["k"]?.modified = Timestamp(seconds: 7) }
    try engine.endJournal(of: #require(SuiteFile(folder: sandbox.folder, suite: "a")))
    #expect(try self.engine().read("a")?.settings["k"]?.modified == Timestamp(seconds: 7))
  }

  /// Without reading the file, which can't be read then.
  @Test func anotherProcessGoesOnByTheJournalAlone() throws {
    let engine = try suite(["k": .string("old"), "l": .integer(1)])
    let other = self.engine()
    var known = try #require(try other.read("a"))
    defer { unsafe chmod(file, 0o600) }
    try engine.set("k", .string("new"), in: "a")
    unsafe chmod(file, 0o200)
    known = try #require(try other.read("a", since: known))
    #expect(known.settings["k"]?.value == .string("new"))
    unsafe chmod(file, 0o600)
    try engine.fold("a")
    unsafe chmod(file, 0o200)
    known = try #require(try other.read("a", since: known))
    #expect(known.settings.mapValues(\.value).dictionary == ["k": .string("new"), "l": .integer(1)])
    unsafe chmod(file, 0o600)
    try engine.endJournal(of: #require(SuiteFile(folder: sandbox.folder, suite: "a")))
    #expect(!hasJournal)
    unsafe chmod(file, 0o200)
    known = try #require(try other.read("a", since: known))
    #expect(known.settings["k"]?.value == .string("new") && known.stamp?.journal == nil)
  }

  @Test func whatAKillLeavesIsFoldedByTheNextCommand() throws {
    _ = try suite(["k": .string("old")]).set("k", .string("new"), in: "a")
    // A journal of a moment ago may be a living process's.
    engine().removeLeftovers()
    #expect(hasJournal)
    let past = timespec(tv_sec: modified().tv_sec - 60, tv_nsec: 0)
    try setTime(past, of: journal)
    engine().removeLeftovers()
    #expect(!hasJournal)
    #expect(sandbox.text(file) == plist("\t<key>k</key>\n\t<string>new</string>"))
  }

  @Test func journalIsFoldedAndRemovedByItself() throws {
    let engine = engine(foldingAfter: .milliseconds(1), removingAfter: .milliseconds(1))
    let watch = try FolderEvents(sandbox.folder, IN_DELETE)
    _ = try engine.create("a")
    try engine.set("k", .string("new"), in: "a")
    _ = try watch.first { $0 == ".a.plist.journal" }
    #expect(sandbox.text(file) == plist("\t<key>k</key>\n\t<string>new</string>"))
    #expect(try engine.values("a") == ["k": .string("new")])
  }

  /// At any byte: what was committed before is there, and writing goes on.
  @Test func journalCanBeCutAnywhere() throws {
    let engine = try suite(["k": .integer(0)])
    let start = sandbox.bytes(journal).count
    var ends = [start]
    for number in 1...3 {
      try engine.set("k", .integer(Int128(number)), in: "a")
      ends.append(sandbox.bytes(journal).count)
    }
    let whole = sandbox.bytes(journal)
    for length in start..<whole.count {
      sandbox.write(whole.prefix(length), to: journal)
      let number = ends.lastIndex { $0 <= length } ?? 0
      let other = self.engine()
      #expect(try other.values("a") == ["k": .integer(Int128(number))], "\(length) of \(ends)")
      if length % 7 == 0 {
        try other.set("l", .bool(true), in: "a")
        #expect(try self.engine().values("a") == ["k": .integer(Int128(number)), "l": .bool(true)])
      }
    }
    for length in 0..<start where length % 5 == 0 {
      sandbox.write(whole.prefix(length), to: journal)
      #expect(try self.engine().values("a") == ["k": .integer(0)])
      try self.engine().set("l", .bool(true), in: "a")
      #expect(
        try self.engine().values("a") == ["k": .integer(0), "l": .bool(true)], "\(length)")
      try self.engine().set("l", nil, in: "a")
      try self.engine().fold("a")
    }
  }

  @Test func programThatDoesNotKnowTheJournalLosesNothing() throws {
    let engine = try suite(["mine": .string("0"), "both": .string("0"), "other": .string("0")])
    try engine.set("mine", .string("1"), in: "a")
    try engine.set("both", .string("1"), in: "a")
    // It has read the file before, and sets two keys.
    try writeElsewhere(["mine": "0", "both": "2", "other": "2"], secondsLater: 60)
    let expected: [ExactString: SettingValue] = [
      "mine": .string("1"), "both": .string("2"), "other": .string("2"),
    ]
    #expect(try engine.values("a") == expected)
    #expect(try self.engine().values("a") == expected)
    try engine.set("new", .bool(true), in: "a")
    try self.engine().fold("a")
    try engine.fold("a")
    #expect(try SuiteFile.values(sandbox.bytes(file)) == expected.merging(["new": .bool(true)]) { $1 })
  }

  @Test func laterCommitWinsOverAProgramThatDoesNotKnowTheJournal() throws {
    let engine = try suite(["both": .string("0")])
    try engine.set("both", .string("1"), in: "a")
    try writeElsewhere(["both": "2"], secondsLater: -10)
    #expect(try engine.values("a") == ["both": .string("1")])
  }

  /// Between the exchange of the files and the record of it.
  @Test func foldThatIsCutOffLosesNothing() throws {
    let engine = try suite(["k": .string("a"), "l": .string("a")])
    try engine.set("k", .string("b"), in: "a")
    try engine.set("l", .string("b"), in: "a")
    try engine.set("l", .string("a"), in: "a")
    let before = sandbox.bytes(journal)
    try engine.fold("a")
    sandbox.write(before, to: journal)
    let expected: [ExactString: SettingValue] = ["k": .string("b"), "l": .string("a")]
    #expect(try self.engine().values("a") == expected)
    try self.engine().fold("a")
    #expect(try SuiteFile.values(sandbox.bytes(file)) == expected)
  }

  /// The file before it is put back by `SuiteFile.readWhole`.
  @Test func powerCutAfterAFoldLosesNothing() throws {
    let engine = try suite(["k": .string("a")])
    try engine.set("k", .string("b"), in: "a")
    let (bytes, time) = (sandbox.bytes(file), modified())
    try engine.fold("a")
    try engine.set("l", .bool(true), in: "a")
    sandbox.write(bytes, to: file)
    try setTime(time, of: file)
    #expect(try self.engine().values("a") == ["k": .string("b"), "l": .bool(true)])
  }

  @Test func largeChangeIsWrittenAtOnceAndLosesNoSmallOne() throws {
    let engine = try suite(["k": .string("a")])
    try engine.set("k", .string("b"), in: "a")
    let large = SettingValue.data([UInt8](repeating: 7, count: SuiteJournal.largestCommit))
    try engine.set("large", large, in: "a")
    #expect(!hasJournal)
    #expect(try SuiteFile.values(sandbox.bytes(file)) == ["k": .string("b"), "large": large])
    // Back to what the journal had before: nothing of it comes again.
    _ = try engine.update("a", known: nil) { contents in
      contents.settings["k"] = Setting(.string("a"))
      contents.settings["large"] = Setting(.data([UInt8](repeating: 8, count: SuiteJournal.largestCommit)))
    }
    #expect(try self.engine().read("a")?.settings["k"]?.value == .string("a"))
  }

  @Test func suiteIsRenamedAndRemovedWithWhatItsJournalHas() throws {
    let engine = try suite(["k": .string("a")])
    try engine.set("k", .string("b"), in: "a")
    try engine.rename("a", to: "b")
    #expect(try engine.values("b") == ["k": .string("b")])
    #expect(sandbox.names(sandbox.folder) == ["b.plist"])
    #expect(throws: StoreError.notEmpty) { try engine.remove("b") }
    try engine.set("k", nil, in: "b")
    try engine.remove("b")
    #expect(sandbox.names(sandbox.folder).isEmpty)
  }

  @Test func linkedSuiteHasNoJournal() throws {
    let engine = engine()
    let target = sandbox.root + "/dotfiles.plist"
    sandbox.write(plist("<key>k</key><string>a</string>"), to: target)
    try #require(unsafe symlink(target, file) == 0)
    try engine.set("k", .string("b"), in: "a")
    #expect(sandbox.text(target).contains("<string>b</string>"))
    #expect(sandbox.names(sandbox.folder) == ["a.plist"])
  }

  @Test func nameThatIsTakenIsLeftAlone() throws {
    let engine = engine()
    _ = try engine.create("a")
    try #require(unsafe mkdir(journal, 0o700) == 0)
    try engine.set("k", .string("b"), in: "a")
    #expect(try SuiteFile.values(sandbox.bytes(file)) == ["k": .string("b")])
    #expect(unsafe rmdir(journal) == 0)
  }

  /// The memory of one process never hides what another one has stored.
  @Test(arguments: 0..<20 as Range<UInt64>)
  func randomProcessesAgree(_ seed: UInt64) throws {
    var random = SplitMix64(seed: seed)
    var model: [ExactString: SettingValue] = [:]
    var engines = [try suite([:]), engine(), engine()]
    var known: [SuiteContents?] = [nil, nil, nil]
    for step in 0..<150 {
      let number = Int.random(in: 0..<3, using: &random)
      let engine = engines[number]
      switch Int.random(in: 0..<20, using: &random) {
      case 0: try engine.fold("a")
      case 1: try engine.endJournal(of: #require(SuiteFile(folder: sandbox.folder, suite: "a")))
      case 2: (engines[number], known[number]) = (self.engine(), nil)
      case 3:
        // Another program sets a key of its own.
        var values = try SuiteFile.values(sandbox.bytes(file))
        values["foundation"] = .integer(Int128(step))
        model["foundation"] = .integer(Int128(step))
        let time = timespec(tv_sec: modified().tv_sec, tv_nsec: (modified().tv_nsec + 1) % 1_000_000_000)
        sandbox.write(try PropertyLists().xml(.dictionary(values)), to: file)
        try setTime(time, of: file)
      case 4..<8: known[number] = try engine.read("a", since: known[number])
      default:
        let key = ExactString("k\(Int.random(in: 0..<6, using: &random))")
        let isRemoved = Int.random(in: 0..<4, using: &random) == 0
        let value = isRemoved ? nil : SettingValue.integer(Int128(Int.random(in: 0..<4, using: &random)))
        model[key] = value
        known[number] = try engine.update("a", known: known[number]) { contents in
          contents.settings[key] = value.map { Setting($0) }
        }
      }
      for (engine, known) in zip(engines, known) {
        let contents = try engine.read("a", since: known)
        #expect(contents?.settings.mapValues(\.value).dictionary == model, "seed \(seed), step \(step)")
      }
    }
    try engine().fold("a")
    #expect(try SuiteFile.values(sandbox.bytes(file)) == model)
  }

  @Test func damagedRecordsAreNone() throws {
    let commit = JournalCommit(
      changes: [
        JournalCommit.Change(key: "k", before: nil, value: .string("\u{1}")),
        JournalCommit.Change(key: "l", before: 7, value: nil),
        JournalCommit.Change(key: "m", before: 7, value: .bool(true), modified: Timestamp(seconds: -1)),
        JournalCommit.Change(key: "n", before: nil, value: .bool(true), modified: Timestamp(seconds: 2)),
        JournalCommit.Change(
          key: "é", before: 8, value: .array([.bool(true), .dictionary(["x": .real(.nan)])])),
      ])
    let version = FileVersion(SuiteStamp(size: 5, modified: Timestamp(seconds: -3)))
    let fold = JournalFold(from: version, to: version, end: .max)
    for content in [JournalRecord.Content.commit(commit), .fold(fold)] {
      let record = JournalRecord(time: Timestamp(seconds: 1, nanoseconds: 2), content: content)
      let bytes = record.bytes
      let read = JournalRecord.read(bytes.span)
      #expect(read?.0 == record && read?.1 == bytes.count)
      for index in bytes.indices {
        var damaged = bytes
        damaged[index] ^= 1 << UInt8(index % 8)
        #expect(!isRecord(Array(bytes[..<index])) && !isRecord(damaged))
      }
    }
  }

  private func isRecord(_ bytes: [UInt8]) -> Bool { JournalRecord.read(bytes.span) != nil }
}
