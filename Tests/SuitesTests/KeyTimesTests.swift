import Glibc
import Model
import Store
import Suites
import Testing

/// Times of keys: kept beside the suites, and never wrong where they are lost.
@Suite(.timeLimit(.minutes(1))) struct KeyTimesTests {
  let sandbox = SuiteSandbox()
  private let early = Timestamp(seconds: 1_000_000_000, nanoseconds: 5)

  private func times(_ suite: ExactString) throws -> [ExactString: Timestamp?] {
    try #require(try sandbox.engine().read(suite)).settings.mapValues(\.modified).dictionary
  }

  /// A write by another program: other content, at a time of the test's choice.
  private func rewrite(_ body: String, at seconds: Int) {
    sandbox.write(plist(body), to: sandbox.path("a"))
    touch(seconds)
  }

  private func touch(_ seconds: Int) {
    let times = [timespec(tv_sec: seconds, tv_nsec: 7), timespec(tv_sec: seconds, tv_nsec: 7)]
    unsafe utimensat(AT_FDCWD, sandbox.path("a"), times, 0)
  }

  private var timesFile: String {
    sandbox.state + "/times/" + (sandbox.names(sandbox.state + "/times").first ?? "missing")
  }

  @Test func theyOutliveTheEngine() throws {
    let engine = sandbox.engine()
    _ = try engine.create("a")
    _ = try engine.update("a", known: nil) { $0.settings["x"] = Setting(.bool(true), modified: early) }
    let contents = try engine.set("y", .integer(1), in: "a")
    #expect(try times("a") == contents.settings.mapValues(\.modified).dictionary)
    #expect(try times("a")["x"] == early)
  }

  @Test func anUnknownKeyHasItsFilesTime() throws {
    rewrite("<key>a</key><true/><key>b</key><true/>", at: 1000)
    let file = Timestamp(seconds: 1000, nanoseconds: 7)
    #expect(try times("a") == ["a": file, "b": file])
  }

  @Test func readingMakesNoFolder() throws {
    rewrite("<key>a</key><true/><key>b</key><true/>", at: 1000)
    let engine = sandbox.engine()
    let known = try #require(try engine.read("a"))
    #expect(sandbox.names(sandbox.state).isEmpty)
    // The first commit makes it, and keeps what was read before.
    try engine.set("c", .bool(true), in: "a")
    #expect(try times("a")["b"] == known.settings["b"]?.modified)
    #expect(try times("a")["b"] == Timestamp(seconds: 1000, nanoseconds: 7))
  }

  @Test func anOutsideChangeGivesItsKeyTheFilesTimeAndNoOther() throws {
    // Times are kept from the first commit on, of whichever suite.
    _ = try sandbox.engine().create("other")
    try sandbox.engine().set("k", .bool(true), in: "other")
    rewrite("<key>a</key><true/><key>b</key><true/>", at: 1000)
    #expect(try times("a").count == 2)
    rewrite("<key>a</key><false/><key>b</key><true/>", at: 2000)
    #expect(
      try times("a") == [
        "a": Timestamp(seconds: 2000, nanoseconds: 7), "b": Timestamp(seconds: 1000, nanoseconds: 7),
      ])
    rewrite("<key>a</key><false/><key>b</key><true/><key>c</key><true/>", at: 3000)
    #expect(try times("a")["a"] == Timestamp(seconds: 2000, nanoseconds: 7))
    touch(4000)
    #expect(try times("a")["c"] == Timestamp(seconds: 3000, nanoseconds: 7), "an equal value keeps its time")
  }

  @Test func aWriteMakesNoOtherKeyJump() throws {
    rewrite("<key>a</key><true/><key>b</key><true/>", at: 1000)
    try sandbox.engine().set("b", .integer(1), in: "a")
    #expect(try times("a")["a"] == Timestamp(seconds: 1000, nanoseconds: 7))
    #expect(try times("a")["b"] != Timestamp(seconds: 1000, nanoseconds: 7))
  }

  @Test func twoEnginesTellEachOther() throws {
    let (one, two) = (sandbox.engine(), sandbox.engine())
    _ = try one.create("a")
    try one.set("x", .integer(1), in: "a")
    #expect(try two.read("a")?.settings == one.read("a")?.settings)
    _ = try two.update("a", known: nil) { $0.settings["x"]?.modified = early }
    #expect(try one.read("a")?.settings["x"]?.modified == early)
  }

  @Test func losingTheFolderIsNoError() throws {
    let engine = sandbox.engine()
    _ = try engine.create("a")
    _ = try engine.update("a", known: nil) { $0.settings["x"] = Setting(.bool(true), modified: early) }
    SuiteSandbox.run(["rm", "-rf", sandbox.state])
    touch(5000)
    #expect(try engine.read("a")?.settings["x"]?.modified == Timestamp(seconds: 5000, nanoseconds: 7))
    try engine.set("y", .bool(true), in: "a")
    #expect(try times("a").count == 2)
  }

  @Test func aTornTailIsForgottenAndWrittenOver() throws {
    let engine = sandbox.engine()
    _ = try engine.create("a")
    _ = try engine.update("a", known: nil) { $0.settings["x"] = Setting(.bool(true), modified: early) }
    _ = try engine.update("a", known: nil) { $0.settings["y"] = Setting(.bool(true), modified: early) }
    let bytes = sandbox.bytes(timesFile)
    for count in (bytes.count / 2)..<bytes.count {
      sandbox.write(bytes.prefix(count) + [0, 1, 2], to: timesFile)
      #expect(try times("a")["x"] == early)
      #expect(try times("a")["y"] != early, "cut off at \(count)")
      _ = try sandbox.engine().update("a", known: nil) { $0.settings["y"]?.modified = early }
      #expect(try times("a") == ["x": early, "y": early])
    }
  }

  @Test func theFileStaysSmall() throws {
    let engine = sandbox.engine()
    _ = try engine.create("a")
    var contents = try engine.set("other", .bool(true), in: "a")
    let other = contents.settings["other"]
    for number in 0..<3000 {
      contents = try engine.update("a", known: contents) {
        $0.settings["x"]?.modified = Timestamp(seconds: Int64(number))
        $0.settings["x"] = $0.settings["x"] ?? Setting(.bool(true))
      }
    }
    #expect(sandbox.bytes(timesFile).count < 60_000)
    #expect(try times("a") == ["x": Timestamp(seconds: 2999), "other": other?.modified])
  }

  @Test func everyNameHasAFileOfItsOwn() throws {
    let names: [ExactString] = [
      "a-b", "a b", ".", "..", "é", "e\u{301}", ExactString(String(repeating: "x", count: 249)),
    ]
    let engine = sandbox.engine()
    for (number, name) in names.enumerated() {
      let time = Timestamp(seconds: Int64(number))
      _ = try engine.create(name)
      _ = try engine.update(name, known: nil) { $0.settings["k"] = Setting(.bool(true), modified: time) }
    }
    for (number, name) in names.enumerated() {
      #expect(try times(name) == ["k": Timestamp(seconds: Int64(number))])
    }
  }
}
