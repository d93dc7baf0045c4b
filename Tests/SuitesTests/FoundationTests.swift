import Model
import Store
import StoreConformance
import Suites
import Testing

/// Settings between Keyhole and an unmodified program with Foundation's UserDefaults.
@Suite(.timeLimit(.minutes(2))) struct FoundationTests {
  let sandbox = SuiteSandbox()
  var foundation: FoundationProgram { FoundationProgram(sandbox: sandbox) }

  @Test func readsWhatFoundationSynchronizes() throws {
    #expect(foundation("write", "com.test") != nil)
    let values = try #require(try sandbox.engine().values("com.test"))
    for key in ["string", "emoji", "lines", "markup", "empty", "control", "blank", "", "key <&>"] {
      #expect(foundation("read", "com.test", key) == values[ExactString(key)].map(describe), "\(key)")
    }
    let expected: [ExactString: SettingValue] = [
      "int": .integer(42), "minInt": .integer(Int128(Int.min)), "maxUInt": .integer(Int128(UInt.max)),
      "minusOne": .integer(-1), "zero": .integer(0), "double": .real(0.1), "three": .real(3),
      "tiny": .real(.leastNonzeroMagnitude), "inf": .real(.infinity), "minusInf": .real(-.infinity),
      "nan": .real(.nan), "float": .real(Double(Float(0.1))), "true": .bool(true), "false": .bool(false),
      "date": .date(1_795_247_580), "fraction": .date(1), "past": .date(-2),
      "ancient": .date(-10_000_000_000),
      "future": .date(10_000_000_000), "data": .data((0...255).map { UInt8($0) }), "noData": .data([]),
      "lines": .string("a\r\nb\rc\n"), "noArray": .array([]), "noDict": .dictionary([:]),
      "array": .array([.integer(1), .string("two"), .array([.real(3.5), .bool(true)])]),
      "dict": .dictionary(["a": .dictionary(["b": .data([1, 2])]), "c": .date(0)]),
    ]
    for (key, value) in expected { #expect(values[key] == value, "\(key)") }
    #expect(foundation("keys", "com.test") == "\(values.count)")
  }

  @Test func foundationReadsEachKindAsItIs() throws {
    let engine = sandbox.engine()
    _ = try engine.create("com.test")
    // A reference is a suite of its own: see below.
    let samples = SettingSamples.all.filter { $0.value.hasNoReference }
    for (key, value) in samples { try engine.set(key, value, in: "com.test") }
    #expect(sandbox.text(sandbox.path("com.test")).hasPrefix("<?xml"))
    for (key, value) in samples {
      #expect(foundation("read", "com.test", key.string) == describe(value), "\(key)")
    }
    #expect(foundation("set", "com.test", "theirs", "integer", "7") != nil)
    var expected = samples.merging(["theirs": .integer(7)]) { $1 }
    // Foundation loses the sign of zero when it writes.
    expected["r-0.0"] = .real(0)
    #expect(try engine.values("com.test") == expected)
  }

  /// UserDefaults reads nothing at all from a suite with a keyed archiver's reference, but destroys nothing.
  @Test func aReferenceBlindsFoundationAndSurvivesIt() throws {
    let engine = sandbox.engine()
    _ = try engine.create("com.test")
    try engine.set("uid", .uid(5), in: "com.test")
    try engine.set("k", .bool(true), in: "com.test")
    #expect(foundation("read", "com.test", "k") == "missing")
    #expect(foundation("set", "com.test", "theirs", "integer", "7") != nil)
    #expect(try engine.values("com.test") == ["uid": .uid(5), "k": .bool(true), "theirs": .integer(7)])
    #expect(engine.problems().map(\.subject) == [sandbox.path("com.test")])
  }

  @Test func foundationReadsWhatXMLCannotHold() throws {
    let engine = sandbox.engine()
    _ = try engine.create("com.test")
    for (key, value) in SettingSamples.unwritable { try engine.set(key, value, in: "com.test") }
    #expect(sandbox.text(sandbox.path("com.test")).hasPrefix("bplist00"))
    for (key, value) in SettingSamples.unwritable {
      #expect(foundation("read", "com.test", key.string) == describe(value), "\(key)")
    }
    #expect(foundation("set", "com.test", "more", "integer", "7") != nil)
    let both = SettingSamples.unwritable.merging(["more": .integer(7)]) { $1 }
    #expect(try engine.values("com.test") == both)
  }

  /// A program that writes the suite with Foundation cuts the fractions off.
  @Test func foundationReadsAndKeepsWholeSecondsOfDates() throws {
    let engine = sandbox.engine()
    _ = try engine.create("com.test")
    let exact = SettingDate(sinceReference: 816_940_380.75) ?? 0
    try engine.set("date", .date(exact), in: "com.test")
    #expect(try sandbox.engine().values("com.test") == ["date": .date(exact)])
    #expect(foundation("read", "com.test", "date") == "date \(exact.seconds)")
    #expect(foundation("set", "com.test", "more", "integer", "7") != nil)
    #expect(
      try engine.values("com.test") == [
        "date": .date(SettingDate(seconds: exact.seconds)), "more": .integer(7),
      ])
  }

  @Test func bothFormsOfFoundationReadTheSame() throws {
    let text = foundation.bytes("serialize", "xml")
    let binary = foundation.bytes("serialize", "binary")
    sandbox.write(text, to: sandbox.path("text"))
    sandbox.write(binary, to: sandbox.path("binary"))
    let engine = sandbox.engine()
    var fromText = try #require(try engine.values("text"))
    let fromBinary = try #require(try engine.values("binary"))
    #expect(binary.starts(with: "bplist00".utf8) && fromText.count > 30)
    // Foundation has 32 bits for a float in binary, and the double next to it in XML.
    fromText["float"] = fromBinary["float"]
    // It has whole seconds in XML, rounded down.
    #expect(fromBinary["fraction"] == SettingDate(sinceReference: 1.75 - 978_307_200).map(SettingValue.date))
    for key: ExactString in ["fraction", "past"] { fromText[key] = fromBinary[key] }
    #expect(fromText == fromBinary)
  }

  @Test func bothWritersKeepEachOthersKeys() throws {
    let engine = sandbox.engine()
    _ = try engine.create("com.test")
    for round in 0..<5 {
      try engine.set("ours", .integer(Int128(round)), in: "com.test")
      #expect(foundation("set", "com.test", "theirs", "integer", "\(round)") != nil)
      let expected: [ExactString: SettingValue] = [
        "ours": .integer(Int128(round)), "theirs": .integer(Int128(round)),
      ]
      #expect(try engine.values("com.test") == expected)
    }
  }

  @Test func removingTheLastKeyInFoundationRemovesTheSuite() throws {
    let engine = sandbox.engine()
    #expect(foundation("set", "com.test", "k", "string", "v") != nil)
    #expect(try engine.values("com.test") == ["k": .string("v")])
    #expect(foundation("remove", "com.test", "k") != nil)
    #expect(try engine.read("com.test") == nil)
    #expect(throws: StoreError.notFound) { try engine.set("k", .bool(true), in: "com.test") }
  }

  @Test func nothingIsSeenByHalfWhileFoundationRewrites() async throws {
    let engine = sandbox.engine()
    _ = try engine.create("com.test")
    _ = try engine.update("com.test", known: nil) { contents in
      for number in 0..<300 { contents.settings[ExactString("k\(number)")] = Setting(.string("value")) }
    }
    let program = foundation
    async let counted = program("count", "com.test", "n", "200")
    for _ in 0..<300 {
      let contents = try #require(try engine.read("com.test"))
      #expect(contents.settings.count >= 300)
      await Task.yield()
    }
    #expect(await counted != nil)
    #expect(try engine.values("com.test")?["n"] == .integer(200))
  }
}

extension SettingValue {
  fileprivate var hasNoReference: Bool {
    switch self {
    case .uid: false
    case .array(let items): items.allSatisfy(\.hasNoReference)
    case .dictionary(let entries): entries.values.allSatisfy(\.hasNoReference)
    default: true
    }
  }
}
