import InMemory
import Model
import Platform
import SecretMemory
import Synchronization
import Testing

@testable import Store

@Suite struct ConfigurationTests {
  @Test func everyDefaultIsAValueOfItsKeyAndNotWeakerThanItself() throws {
    for key in ConfigurationKey.allCases {
      try key.check(key.fallback)
      #expect(!key.isWeaker(key.fallback, than: key.fallback))
      #expect(try key.value(reading: ConfigurationKey.words(of: key.fallback)) == key.fallback)
      #expect(ConfigurationKey(path: key.path) == key && ConfigurationKey(attribute: key.attribute) == key)
    }
  }

  @Test(arguments: [
    (ConfigurationKey.authReuse, SettingValue.integer(0), false), (.authReuse, .integer(11), true),
    (.authTimeout, .integer(61), true), (.authTimeout, .integer(30), false),
    (.autoLock, .integer(1), false), (.autoLock, .integer(65535), false),
    (.askUnlock, .bool(false), false), (.authRequests, .bool(false), false),
    (.authCommand, .string("/bin/true"), true), (.browsers, .array([.string("/bin/cat")]), false),
    (.eol, .string("exact"), false), (.echo, .bool(false), false),
    (.history, .integer(0), true), (.history, .integer(9), true), (.history, .integer(11), false),
    (.historyAge, .integer(29), true), (.historyAge, .integer(31), false),
  ])
  func valueIsWeakerThanTheDefaultOrNot(key: ConfigurationKey, value: SettingValue, isWeaker: Bool) throws {
    try key.check(value)
    #expect(key.isWeaker(value, than: key.fallback) == isWeaker)
  }

  /// Off is the default of auto-lock, and lies in the vault all the same: there it comes before what the suite says.
  @Test func whatTurnsAKeyOffLiesInTheVaultOnly() {
    #expect(ConfigurationKey.autoLock.isForVault(.integer(0)))
    #expect(!ConfigurationKey.autoLock.isForVault(.integer(65535)))
    #expect(ConfigurationKey.history.isForVault(.integer(0)))
    for key in ConfigurationKey.allCases where key != .autoLock { #expect(!key.isForVault(key.fallback)) }
    #expect(ConfigurationKey.autoLock.restriction == "0 lies in the vault")
    #expect(ConfigurationKey.historyAge.restriction == "less than 30 lies in the vault")
  }

  @Test func valuesAreComparedAlsoBesideTheDefault() {
    #expect(ConfigurationKey.autoLock.isWeaker(.integer(0), than: .integer(300)))
    #expect(ConfigurationKey.autoLock.isWeaker(.integer(301), than: .integer(300)))
    #expect(!ConfigurationKey.autoLock.isWeaker(.integer(300), than: .integer(0)))
    #expect(ConfigurationKey.askUnlock.isWeaker(.bool(true), than: .bool(false)))
    #expect(ConfigurationKey.authCommand.isWeaker(.string("/a"), than: .string("/b")))
    #expect(!ConfigurationKey.authCommand.isWeaker(.string(""), than: .string("/b")))
    let (one, two) = (
      SettingValue.array([.string("/a")]), SettingValue.array([.string("/b"), .string("/a")])
    )
    #expect(
      ConfigurationKey.browsers.isWeaker(one, than: two)
        && !ConfigurationKey.browsers.isWeaker(two, than: one))
  }

  @Test(arguments: [
    (ConfigurationKey.authReuse, SettingValue.string("0")), (.authReuse, .integer(-1)),
    (.authReuse, .integer(301)), (.authTimeout, .integer(9)), (.askUnlock, .integer(0)),
    (.eol, .string("crlf")),
    (.authCommand, .string("true")), (.browsers, .string("/bin/cat")), (.browsers, .array([.string("cat")])),
    (.browsers, .array([.string("/bin/a\n/bin/b")])),
  ])
  func otherTypesAndValuesBeyondTheLimitsAreRefused(key: ConfigurationKey, value: SettingValue) {
    #expect(throws: StoreError.invalidValue(reason: "`\(key.rawValue)` is \(key.values)")) {
      try key.check(value)
    }
  }

  @Test func optionsComeBeforeTheVaultAndThatBeforeTheSuite() {
    let configuration = Configuration(
      options: [.authReuse: .integer(1)], sealed: [.authReuse: .integer(2), .authTimeout: .integer(120)],
      suite: [.authReuse: .integer(3), .authTimeout: .integer(20), .autoLock: .integer(300)])
    #expect(configuration.number(.authReuse) == 1 && configuration[.authReuse].origin == .option)
    #expect(configuration.number(.authTimeout) == 120 && configuration[.authTimeout].origin == .vault)
    #expect(configuration.number(.autoLock) == 300 && configuration[.autoLock].origin == .suite)
    #expect(configuration[.echo].origin == .fallback && configuration.weakened == [.authTimeout])
  }
}

/// Writes into Keyhole's own suite.
@Suite struct SuiteConfigurationTests {
  private let engine = MemorySuites()
  private let store: SettingsStore

  init() throws {
    store = SettingsStore(engine: engine)
    try store.createSuite("keyhole")
  }

  private func set(_ key: ExactString, _ value: SettingValue?, in suite: ExactString = "keyhole") throws {
    try store.suite(suite).update { $0.settings[key] = value.map { Setting($0) } }
  }

  private func error(_ key: ExactString, _ value: SettingValue) -> Errno? {
    do { try set(key, value) } catch let error as StoreError { return error.errno } catch {}
    return nil
  }

  @Test func whatProtectsMoreIsTakenAndWhatProtectsLessIsNot() throws {
    try set("auth-reuse", .integer(0))
    #expect(
      error("auth-reuse", .integer(11)) == .EPERM && error("auth-command", .string("/bin/true")) == .EPERM)
    #expect(error("auth-reuse", .string("0")) == .EINVAL && error("unknown", .integer(1)) == .EINVAL)
    #expect(SuiteConfiguration(in: store).values == [.authReuse: .integer(0)])
    try set("auth-reuse", .integer(10))
    try set("auth-reuse", nil)
    #expect(SuiteConfiguration(in: store).values.isEmpty)
  }

  @Test func noLockAndLessHistoryAreNotTaken() throws {
    try set("auto-lock", .integer(600))
    try set("history", .integer(20))
    for (key, value) in [("auto-lock", 0), ("history", 9), ("history", 0), ("history-age", 0)] {
      #expect(error(ExactString(key), .integer(Int128(value))) == .EPERM)
    }
    #expect(SuiteConfiguration(in: store).values == [.autoLock: .integer(600), .history: .integer(20)])
  }

  /// The value that was followed before is named, with the command that keeps it.
  @Test func whatAnEarlierKeyholeHasWrittenIsNotFollowed() throws {
    _ = try engine.update("keyhole", known: nil) { contents in
      contents.settings["auto-lock"] = Setting(.integer(0))
      contents.settings["history"] = Setting(.integer(0))
    }
    let suite = SuiteConfiguration(in: store)
    #expect(suite.values.isEmpty && suite.ignored.map(\.key) == ["auto-lock", "history"])
    for (ignored, value) in zip(suite.ignored, ["auto-lock 0", "history 0"]) {
      #expect(ignored.reason.contains("`keyhole config \(value)` keeps it in the vault"), "\(ignored.reason)")
    }
  }

  /// Further digits may make a number one that is taken.
  @Test func numberThatIsWrittenInPartsIsCheckedWhereItEnds() throws {
    let check = { (value: Int128, isLine: Bool) throws(StoreError) in
      try SuiteConfiguration.check("history", written: .integer(value), isLine: isLine, before: nil)
    }
    try check(2, false)
    try check(20, true)
    #expect(throws: StoreError.self) { try check(2, true) }
  }

  /// Of another program's suite of that name nothing is followed, changed or lost.
  @Test func whatAnotherProgramHasWrittenStaysAndIsNotFollowed() throws {
    _ = try engine.update("keyhole", known: nil) { contents in
      contents.settings["auth-reuse"] = Setting(.integer(300))
      contents.settings["auto-lock"] = Setting(.integer(60))
      contents.settings["colour"] = Setting(.string("red"))
    }
    let suite = SuiteConfiguration(in: store)
    #expect(
      suite.values == [.autoLock: .integer(60)] && suite.ignored.map(\.key) == ["auth-reuse", "colour"])
    try set("auth-timeout", .integer(20))
    #expect(error("colour", .string("blue")) == .EINVAL)
    #expect(try store.suite("keyhole").fetch()?.entries["colour"]?.value == .string("red"))
    try set("colour", nil)
  }

  @Test func anotherSuiteDoesNotTakeThePlaceWithWhatProtectsLess() throws {
    try store.removeSuite("keyhole")
    try store.createSuite("other")
    try set("auth-reuse", .integer(300), in: "other")
    #expect(throws: StoreError.self) { try store.renameSuite("other", to: "keyhole") }
    try set("auth-reuse", .integer(1), in: "other")
    try store.renameSuite("other", to: "keyhole")
    #expect(SuiteConfiguration(in: store).values == [.authReuse: .integer(1)])
  }
}
