import Dispatch
import Model
import Store
import StoreConformance
import TestSupport
import Testing

@testable import Suites

/// One key of a suite, read and changed without the others.
@Suite(.timeLimit(.minutes(2))) struct SingleKeyTests {
  let sandbox = SuiteSandbox()

  /// Another process to the files. Files of any size are searched.
  private func engine() -> PropertyListFolder {
    PropertyListFolder(
      folder: sandbox.folder, stateFolder: sandbox.state, journalsFrom: 0, foldingAfter: .never,
      removingAfter: .never)
  }

  private func only(_ key: ExactString) -> SingleKey { SingleKey(folder: engine(), suite: "a", key: key) }

  private func suite(_ values: [ExactString: SettingValue]) throws {
    let engine = engine()
    _ = try engine.create("a")
    _ = try engine.update("a", known: nil) { contents in
      for (key, value) in values { contents.settings[key] = Setting(value) }
    }
    try engine.fold("a")
  }

  private var file: String { sandbox.path("a") }

  /// That the file was searched, not read whole.
  private func found(_ key: ExactString) throws -> SuiteContents? {
    try engine().contents(of: "a", only: key)
  }

  @Test(arguments: SuiteEngineConformance.cases)
  func otherSuitesKeepTheProtocol(_ test: SuiteEngineConformance.Case) throws {
    try test.run(SingleKey(folder: engine(), suite: "other", key: "k"))
  }

  @Test func everyTypeIsRead() throws {
    try suite(SettingSamples.all)
    for (key, value) in SettingSamples.all {
      let contents = try #require(try found(key))
      #expect(contents.settings.mapValues(\.value).dictionary == [key: value])
      #expect(try contents.stamp == engine().stamp(of: "a"))
    }
    #expect(try #require(try found("there is none")).settings.isEmpty)
  }

  @Test func binaryFileIsSearched() throws {
    var values = SettingSamples.all
    for (key, value) in SettingSamples.unwritable { values[key] = value }
    sandbox.write(PropertyLists.binary(.dictionary(values)), to: file)
    for (key, value) in values {
      #expect(try #require(try found(key)).settings.mapValues(\.value).dictionary == [key: value])
    }
    #expect(try #require(try found("there is none")).settings.isEmpty)
    // It is not changed without the others.
    #expect(try engine().update("a", only: "k") { $0.settings["k"] = Setting(.integer(1)) } == nil)
    _ = try only("k").update("a", known: nil) { $0.settings["k"] = Setting(.integer(1)) }
    #expect(try engine().values("a")?.count == values.count + 1)
  }

  @Test func journalHasTheLastWord() throws {
    try suite(["k": .string("old"), "l": .integer(1), "m": .integer(2)])
    try engine().set("k", .string("new"), in: "a")
    try engine().set("l", nil, in: "a")
    try engine().set("n", .bool(true), in: "a")
    #expect(try found("k")?.settings["k"]?.value == .string("new"))
    #expect(try #require(try found("l")).settings.isEmpty)
    #expect(try found("m")?.settings["m"]?.value == .integer(2))
    #expect(try found("n")?.settings["n"]?.value == .bool(true))
  }

  @Test(arguments: [
    "<key>k</key><integer>1</integer><key>x</key><integer>1a</integer>",
    "<key>k</key><integer>1</integer><key>x</key>",
    "<key>k</key><integer>1</integer><key>x</key><real>.</real>",
    "<key>k</key><integer>1</integer><key>x</key><integer>99999999999999999999999</integer>",
    "<key>k</key><integer>1</integer><key>x</key><string>a&b</string>",
    "<key>k</key><integer>1</integer><key>x</key><data>*</data>",
    "<key>k</key><integer>1</integer><key>x</key><array><integer>1</array>",
    "<key>k</key><integer>1</integer><key>x</key><dict><integer>1</integer></dict>",
    "<key>k</key><integer>1</integer><key>x</key><true>1</true>",
    "<key>k</key><integer>1</integer><key>x</key><other/>",
    "<key>k</key><integer>1</integer>text",
    "<key>k</key><integer>1</integer></dict><dict>",
  ])
  func damageElsewhereIsDamage(_ body: String) throws {
    sandbox.write(plist(body), to: file)
    #expect(throws: StoreError.self) { try engine().read("a") }
    #expect(try found("k") == nil)
    #expect(throws: StoreError.self) { try only("k").read("a", since: nil) }
    #expect(throws: StoreError.self) {
      try only("k").update("a", known: nil) { $0.settings["k"] = Setting(.integer(2)) }
    }
    #expect(sandbox.text(file) == plist(body))
  }

  @Test(arguments: [
    "<key>k</key><integer>1</integer>", "<key>&#107;</key><integer>1</integer>",
    "<key><![CDATA[k]]></key><integer> 1</integer>", "<!-- k --><key>k</key><!-- 2 --><integer>1</integer>",
    "<key>z</key><string/><key>k</key><integer>1</integer><key>a</key><dict><key>k</key><true/></dict>",
    "<key>k</key><integer>2</integer><key>k</key><integer>1</integer>",
  ])
  func layoutOfOthersIsRead(_ body: String) throws {
    sandbox.write(plist(body), to: file)
    #expect(try only("k").read("a", since: nil)?.settings["k"]?.value == .integer(1))
    // A whole read records the times of keys.
    _ = try engine().set("other", .bool(true), in: "a")
    _ = try only("k").update("a", known: nil) { $0.settings["k"] = Setting(.integer(7)) }
    try engine().fold("a")
    let values = try #require(try engine().values("a"))
    #expect(values["k"] == .integer(7))
    #expect(values["other"] == .bool(true))
    if body.contains("<key>z</key>") {
      #expect(values["z"] == .string("") && values["a"] == .dictionary(["k": .bool(true)]))
    }
  }

  @Test func changeIsARecordAndAFoldKeepsTheRest() throws {
    try suite(SettingSamples.all)
    let times = try #require(try engine().read("a")).settings.mapValues(\.modified)
    let before = sandbox.bytes(file)
    let contents = try #require(
      try engine().update("a", only: "new") { $0.settings["new"] = Setting(.string("<1>")) })
    #expect(contents.settings.keys == ["new"])
    #expect(sandbox.bytes(file) == before)
    try engine().fold("a")
    var values = SettingSamples.all
    values["new"] = .string("<1>")
    #expect(try engine().values("a") == values)
    // As if it had been written whole.
    let whole = EncodedSuite(SharedDictionary(values.mapValues { Setting($0) }))
    #expect(sandbox.bytes(file) == whole?.document)
    let read = try #require(try engine().read("a"))
    #expect(read.settings["new"]?.modified == contents.settings["new"]?.modified)
    for key in SettingSamples.all.keys { #expect(read.settings[key]?.modified == times[key]) }
  }

  @Test func firstChangeOfASuiteOfOthersKeepsItsTimes() throws {
    sandbox.write(
      plist("\t<key>k</key>\n\t<integer>1</integer>\n\t<key>l</key>\n\t<integer>1</integer>"), to: file)
    let time = try #require(try engine().stamp(of: "a")).modified
    for value in 2...4 {
      _ = try only("k").update("a", known: nil) { $0.settings["k"] = Setting(.integer(Int128(value))) }
      try engine().fold("a")
    }
    let settings = try #require(try engine().read("a")).settings
    #expect(settings["l"]?.modified == time)
    #expect(settings["k"]?.value == .integer(4))
  }

  @Test func anEqualValueIsNoChange() throws {
    try suite(["k": .string("v"), "l": .integer(1)])
    let before = try engine().stamp(of: "a")
    _ = try only("k").update("a", known: nil) { $0.settings["k"] = Setting(.string("v")) }
    #expect(try engine().stamp(of: "a") == before)
  }

  @Test func anotherKeyIsChangedOnTheWholeSuite() throws {
    try suite(["k": .integer(1), "l": .integer(1)])
    _ = try only("k").update("a", known: nil) { $0.settings["l"] = Setting(.integer(2)) }
    #expect(try engine().values("a") == ["k": .integer(1), "l": .integer(2)])
  }

  /// Against an engine that reads everything, with folds of one, of the other and of neither.
  @Test func randomChangesAreThoseOfTheWholeSuite() throws {
    var random = SplitMix64(seed: 15)
    var model: [ExactString: SettingValue] = ["k1": .integer(0)]
    try suite(model)
    let keys = (0..<12).map { ExactString("k\($0)") }
    for step in 0..<80 {
      let key = keys[Int.random(in: 0..<keys.count, using: &random)]
      let isRemoval = Int.random(in: 0..<4, using: &random) == 0
      model[key] = isRemoval ? nil : .string(ExactString("v\(step)&\n\t<key>"))
      let setting = model[key].map { Setting($0) }
      if Bool.random(using: &random) {
        _ = try only(key).update("a", known: nil) { $0.settings[key] = setting }
      } else {
        _ = try engine().update("a", known: nil) { $0.settings[key] = setting }
      }
      if Int.random(in: 0..<3, using: &random) == 0 { try engine().fold("a") }
      for key in keys.prefix(4) {
        #expect(try only(key).read("a", since: nil)?.settings[key]?.value == model[key])
      }
      #expect(try engine().values("a") == model)
    }
    try engine().fold("a")
    let whole = EncodedSuite(SharedDictionary(model.mapValues { Setting($0) }))
    #expect(sandbox.bytes(file) == whole?.document)
  }
}
