import InMemory
import Model
import Service
import Store
import Synchronization
import Testing

@Suite(.timeLimit(.minutes(1))) struct SettingsMigrationTests {
  private let files = MemorySuites()
  private let cluster = MemorySuites()

  private func fill() {
    files.replace("app", with: ["a": .integer(1), "b": .string("x")])
    files.replace("other", with: ["c": .bool(true)])
    files.replace("empty", with: [:])
  }

  private func migration(
    _ files: (any SuiteEngine)? = nil, _ cluster: (any SuiteEngine)? = nil
  ) -> SettingsMigration {
    SettingsMigration(from: .files(files ?? self.files), to: .cluster(cluster ?? self.cluster))
  }

  /// Returns why suites stay.
  @discardableResult
  private func run(_ migration: SettingsMigration) throws -> [ExactString: StoreError] {
    var left: [ExactString: StoreError] = [:]
    for suite in try migration.plan() { left[suite] = try migration.move(suite) }
    return left
  }

  private func values(_ engine: any SuiteEngine) throws -> [ExactString: [ExactString: SettingValue]] {
    var values: [ExactString: [ExactString: SettingValue]] = [:]
    for suite in try engine.suites().keys {
      values[suite] = try engine.read(suite)?.settings.dictionary.mapValues(\.value)
    }
    return values
  }

  @Test func movesEverySuiteWithItsTimes() throws {
    fill()
    let (before, time) = (try values(files), try files.read("app")?.settings["a"]?.modified)
    let migration = migration()
    #expect(try migration.plan() == ["app", "empty", "other"])
    #expect(try migration.check("app") == nil)
    #expect(try values(files) == before && values(cluster).isEmpty, "a check changes nothing")
    #expect(try run(migration).isEmpty)
    #expect(try values(files).isEmpty && values(cluster) == before)
    #expect(try cluster.read("app")?.settings["a"]?.modified == time)
    let back = SettingsMigration(from: .cluster(cluster), to: .files(files))
    #expect(try run(back).isEmpty)
    #expect(try values(files) == before && values(cluster).isEmpty)
  }

  @Test func configurationOfTheMachineStays() throws {
    files.replace("keyhole", with: ["auto-lock": .integer(60)])
    #expect(try migration().plan().isEmpty)
  }

  @Test func otherValueIsNotOverwritten() throws {
    fill()
    cluster.replace("app", with: ["a": .integer(2), "z": .integer(3)])
    let left = try run(migration())
    #expect(
      left.keys.map { $0 } == ["app"] && left["app"]?.message.contains("another value of its key a") == true)
    #expect(try values(files).keys.map { $0 } == ["app"])
    #expect(try values(cluster)["app"] == ["a": .integer(2), "z": .integer(3)])
  }

  @Test func equalAndFurtherSettingsAreJoined() throws {
    fill()
    cluster.replace("app", with: ["a": .integer(1), "z": .integer(3)])
    #expect(try run(migration()).isEmpty)
    #expect(try values(cluster)["app"] == ["a": .integer(1), "b": .string("x"), "z": .integer(3)])
  }

  @Test func suiteThatCanNotBeMovedStaysWhole() throws {
    fill()
    files.setReadOnly("other", "a test")
    files.replace("large", with: ["a": .integer(1), "b": .data([UInt8](repeating: 1, count: 1 << 21))])
    let before = try values(files)
    #expect(try migration().check("large") == .tooLarge(limit: 1 << 20))
    let left = try run(migration())
    #expect(Set(left.keys) == ["large", "other"])
    #expect(try values(files) == before.filter { left[$0.key] != nil })
    #expect(Set(try values(cluster).keys) == ["app", "empty"])
  }

  /// A store that goes away at any call, before or after it has done what it was asked, and comes back.
  @Test(arguments: [false, true], [false, true]) func nothingIsLost(isSource: Bool, isDone: Bool) throws {
    for count in 0..<200 {
      for suite in try files.suites().keys { files.replace(suite, with: nil) }
      for suite in try cluster.suites().keys { cluster.replace(suite, with: nil) }
      fill()
      files.replace(
        "many",
        with: Dictionary(uniqueKeysWithValues: (0..<600).map { (ExactString("k\($0)"), .integer($0)) }))
      let before = try values(files)
      // The cluster is the source in the one case, and the target in the other.
      let failing = FailingSuites(isSource ? files : cluster, after: count, doing: isDone)
      let migration =
        isSource
        ? SettingsMigration(from: .cluster(failing), to: .files(cluster))
        : SettingsMigration(from: .files(files), to: .cluster(failing))
      do {
        #expect(try run(migration).isEmpty)
        #expect(count > 15)
        return
      } catch is SettingsMigration.Failure {}
      for (suite, settings) in before {
        let (old, new) = (try values(files)[suite] ?? [:], try values(cluster)[suite] ?? [:])
        for (key, value) in settings {
          #expect(old[key] == value || new[key] == value, "\(count) \(suite) \(key)")
        }
      }
      failing.comeBack()
      #expect(try run(migration).isEmpty, "\(count)")
      #expect(try values(files).isEmpty && values(cluster) == before, "\(count)")
    }
    Issue.record("it never ended")
  }

  /// Another machine changes the suite between its copy and its removal.
  @Test func suiteThatIsChangedMeanwhileStays() throws {
    fill()
    let changing = FailingSuites(cluster, after: .max, doing: true)
    changing.onRead(of: "app", number: 2) { files in files.replace("app", with: ["a": .integer(9)]) }
    let left = try run(migration(nil, changing.watching(files)))
    #expect(left["app"]?.message.contains("was changed while it was moved") == true)
    #expect(try values(files)["app"] == ["a": .integer(9)] && values(cluster)["app"] == nil)
  }
}

/// Suites that can't be reached any more after so many calls.
private final class FailingSuites: SuiteEngine, @unchecked Sendable {
  // Used by one thread.
  private let engine: MemorySuites
  private let isDone: Bool
  private var left: Int
  private var watched: MemorySuites?
  private var action: (suite: ExactString, number: Int, body: (MemorySuites) -> Void)?

  init(_ engine: MemorySuites, after count: Int, doing isDone: Bool) {
    (self.engine, left, self.isDone) = (engine, count, isDone)
  }

  func comeBack() { left = .max }

  func onRead(of suite: ExactString, number: Int, _ body: @escaping (MemorySuites) -> Void) {
    action = (suite, number, body)
  }

  func watching(_ other: MemorySuites) -> FailingSuites {
    watched = other
    return self
  }

  private func call<Value>(_ body: () throws(StoreError) -> Value) throws(StoreError) -> Value {
    left -= 1
    if left >= 0 { return try body() }
    if left == -1, isDone { _ = try body() }
    throw .unreachable(reason: "a test")
  }

  var propertyLists: any PropertyListCoding { engine.propertyLists }
  func suites() throws(StoreError) -> [ExactString: SuiteStamp] {
    try call { () throws(StoreError) in try engine.suites() }
  }
  func stamp(of suite: ExactString) throws(StoreError) -> SuiteStamp? {
    try call { () throws(StoreError) in try engine.stamp(of: suite) }
  }
  func read(_ suite: ExactString, since known: SuiteContents?) throws(StoreError) -> SuiteContents? {
    if let watched, let action, action.suite == suite {
      self.action?.number -= 1
      if action.number == 1 { action.body(watched) }
    }
    return try call { () throws(StoreError) in try engine.read(suite, since: known) }
  }
  func update(
    _ suite: ExactString, known: SuiteContents?, _ body: (inout SuiteContents) throws(StoreError) -> Void
  ) throws(StoreError) -> SuiteContents {
    try call { () throws(StoreError) in try engine.update(suite, known: known, body) }
  }
  func readOnlyReason(of suite: ExactString) throws(StoreError) -> String? { nil }
  func create(_ suite: ExactString) throws(StoreError) -> SuiteContents {
    try call { () throws(StoreError) in try engine.create(suite) }
  }
  func remove(_ suite: ExactString) throws(StoreError) {
    try call { () throws(StoreError) in try engine.remove(suite) }
  }
  func rename(_ suite: ExactString, to name: ExactString) throws(StoreError) {
    try call { () throws(StoreError) in try engine.rename(suite, to: name) }
  }
  func synchronize(_ suite: ExactString) throws(StoreError) {}
  func room() throws(StoreError) -> DiskRoom { try engine.room() }
  func problems() -> [Problem] { [] }
}
