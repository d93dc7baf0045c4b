import Model
import Store
import Suites
import TestSupport
import Testing

/// A commit writes the text of the last one with one entry changed: it must equal the text of a complete new encoding.
@Suite(.timeLimit(.minutes(1))) struct PatchedTextTests {
  let sandbox = SuiteSandbox()

  @Test(arguments: 0..<3 as Range<UInt64>)
  func itIsWhatWritingAllAnewWouldGive(_ seed: UInt64) throws {
    var random = SplitMix64(seed: seed)
    let engine = sandbox.engine()
    var contents = try engine.create("a")
    var expected: [ExactString: SettingValue] = [:]
    for round in 0..<120 {
      // Up to several hundred keys, then down to few, so that pieces are split and go.
      let growth = round < 60 ? 10 : 1
      let changes = (0..<12).map { number -> (ExactString, SettingValue?) in
        guard number < growth else { return (expected.keys.randomElement(using: &random) ?? "x", nil) }
        return (random.string(SplitMix64.plain), random.value(SplitMix64.plain))
      }
      for (key, value) in changes { expected[key] = value }
      contents = try engine.update("a", known: contents) { stored in
        for (key, value) in changes { stored.settings[key] = value.map { Setting($0) } }
      }
      try expect(expected, in: engine)
    }
  }

  @Test func whatXMLCannotSayIsBinaryForAsLongAsItIsThere() throws {
    let engine = sandbox.engine()
    _ = try engine.create("a")
    try engine.set("x", .integer(1), in: "a")
    try engine.set("bad", .string("\u{1}"), in: "a")
    #expect(sandbox.bytes(sandbox.path("a")).starts(with: "bplist00".utf8))
    try engine.set("x", .integer(2), in: "a")
    #expect(sandbox.bytes(sandbox.path("a")).starts(with: "bplist00".utf8))
    try engine.set("bad", nil, in: "a")
    try expect(["x": .integer(2)], in: engine)
  }

  @Test func anothersChangeIsNotWrittenOver() throws {
    let (engine, other) = (sandbox.engine(), sandbox.engine())
    _ = try engine.create("a")
    try engine.set("x", .integer(1), in: "a")
    try other.set("y", .integer(1), in: "a")
    try engine.set("z", .integer(1), in: "a")
    try expect(["x": .integer(1), "y": .integer(1), "z": .integer(1)], in: engine)
  }

  private func expect(_ values: [ExactString: SettingValue], in engine: PropertyListFolder) throws {
    try #require(try sandbox.engine().values("a") == values)
    let xml = try PropertyLists().xml(.dictionary(values))
    try #require(sandbox.bytes(sandbox.path("a")) == xml)
  }
}
