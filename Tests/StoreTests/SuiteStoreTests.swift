import Dispatch
import Model
import StoreConformance
import Synchronization
import Testing

@testable import Store

@Suite(.timeLimit(.minutes(1))) struct SuiteStoreTests {
  let engine = FragileSuites()
  let store: SettingsStore
  let suite: SuiteStore
  var log: ChangeLog

  init() throws {
    store = SettingsStore(engine: engine)
    suite = store.suite("s")
    engine.good.replace("s", with: ["a": .integer(1), "b": .string("x")])
    log = ChangeLog(store.feed)
  }

  /// Its stamp after it was found damaged is that of the complete file.
  @Test func suiteThatIsCompletedWhileItIsReadIsReadAgain() throws {
    engine.good.replace("s", with: ["k": .integer(1)])
    let suite = SettingsStore(engine: engine).suite("s")
    _ = try suite.fetch()
    engine.good.replace("s", with: ["k": .integer(2)])
    engine.setDamagedUntilRead()
    _ = try suite.fetch()
    #expect(try suite.fetch()?.entries["k"]?.value == .integer(2))
  }

  @Test mutating func ownChangeIsLocalNews() async throws {
    try suite.update { contents in
      contents.settings["a"] = Setting(.integer(2))
      contents.settings["b"] = nil
      contents.settings["c"] = Setting(.bool(true))
    }
    let changes = await log.next()
    #expect(
      Set(changes) == [
        .key(.modified, "a", .local), .key(.deleted, "b", .local), .key(.created, "c", .local),
      ])
    #expect(changes.count == 3 && suite.values == ["a": .integer(2), "c": .bool(true)])
  }

  @Test mutating func equalValueIsNoChange() async throws {
    try suite.set("a", .integer(1))
    try suite.update { _ in }
    try suite.update { $0.settings["a"]?.modified = Timestamp(seconds: 5) }
    #expect(await log.next() == [])
    #expect(suite.snapshot?.entries["a"]?.modified == Timestamp(seconds: 5))
  }

  @Test mutating func typeAloneIsAChange() async throws {
    try suite.set("a", .real(1))
    #expect(await log.next() == [.key(.modified, "a", .local)])
  }

  @Test mutating func firstLookIsNoNews() async throws {
    #expect(suite.snapshot == nil)
    #expect(try suite.fetch()?.entries.count == 2)
    #expect(await log.next() == [])
  }

  @Test mutating func outsideChangeIsNewsOnce() async throws {
    _ = try suite.fetch()
    engine.good.replace("s", with: ["a": .integer(2), "c": .bool(true)])
    store.refreshAll()
    store.refresh("s")
    _ = try suite.fetch()
    let changes = await log.next()
    #expect(
      Set(changes) == [
        .key(.modified, "a", .external), .key(.deleted, "b", .external), .key(.created, "c", .external),
      ])
    #expect(changes.count == 3)
  }

  @Test mutating func outsideWriteOfEqualValuesIsNoNews() async throws {
    let before = try suite.fetch()
    engine.good.replace("s", with: ["a": .integer(1), "b": .string("x")])
    let after = try suite.fetch()
    #expect(await log.next() == [])
    #expect(after?.stamp != before?.stamp)
    #expect(after?.entries["a"]?.version == before?.entries["a"]?.version)
  }

  @Test mutating func updateOnTopOfAnUnseenOutsideChangeLosesNeither() async throws {
    _ = try suite.fetch()
    engine.good.replace("s", with: ["a": .integer(7), "b": .string("x"), "new": .bool(true)])
    try suite.set("b", .string("y"))
    #expect(suite.values == ["a": .integer(7), "b": .string("y"), "new": .bool(true)])
    #expect(try engine.good.read("s")?.settings.mapValues(\.value).dictionary == suite.values)
    let changes = await log.next()
    #expect(
      Set(changes) == [
        .key(.modified, "a", .external), .key(.created, "new", .external), .key(.modified, "b", .local),
      ])
    #expect(changes.count == 3 && changes.last == .key(.modified, "b", .local))
  }

  @Test mutating func removalOutsideIsNewsOfTheSuiteToo() async throws {
    _ = try suite.fetch()
    engine.good.replace("s", with: nil)
    #expect(try suite.fetch() == nil && suite.snapshot == nil)
    _ = try suite.fetch()
    let changes = await log.next()
    #expect(
      Set(changes) == [
        .key(.deleted, "a", .external), .key(.deleted, "b", .external),
        Change(.deleted, .suite("s"), origin: .external),
      ])
    #expect(changes.count == 3 && changes.last?.subject == .suite("s"))
  }

  @Test mutating func moveIsOneChange() async throws {
    _ = try suite.fetch()
    try suite.update(moving: ("a", "z")) { contents in
      contents.settings["z"] = contents.settings.removeValue(forKey: "a")
    }
    let moved = Change(
      .moved, .key(suite: "s", key: "z"), previous: .key(suite: "s", key: "a"), origin: .local)
    #expect(await log.next() == [moved])
    #expect(suite.values?["z"] == .integer(1) && suite.values?["a"] == nil)
  }

  @Test mutating func refusedUpdateChangesNothing() async throws {
    #expect(throws: StoreError.noSuchAttribute) {
      try suite.update { contents throws(StoreError) in
        contents.settings = [:]
        throw .noSuchAttribute
      }
    }
    engine.good.refuse(.noSpace)
    #expect(throws: StoreError.noSpace) { try suite.set("a", .integer(2)) }
    #expect(await log.next() == [])
    #expect(try suite.fetch()?.entries["a"]?.value == .integer(1))
  }

  @Test func missingSuiteCanNotBeChanged() throws {
    #expect(throws: StoreError.notFound) { try store.suite("none").set("a", .integer(2)) }
    #expect(try store.suite("none").fetch() == nil)
  }

  @Test func versionsTellValuesApart() throws {
    let first = try #require(try suite.fetch()?.entries)
    try suite.set("a", .integer(2))
    let second = try #require(suite.snapshot?.entries)
    #expect(first["a"]?.version != second["a"]?.version && first["b"]?.version == second["b"]?.version)
    try suite.set("a", .integer(1))
    let all = [first, second, suite.snapshot?.entries].compactMap { $0 }.compactMap { $0["a"]?.version }
    #expect(Set(all + [first["b"]?.version ?? 0]).count == 4)
    #expect(first["a"]?.size == 2 && suite.snapshot?.entries["b"]?.size == 2)
  }

  @Test func damagedSuiteKeepsItsLastGoodValuesReadOnly() throws {
    _ = try suite.fetch()
    engine.setDamaged(true)
    let damaged = try #require(try suite.fetch())
    #expect(damaged.entries.count == 2 && damaged.readOnly != nil)
    #expect { try suite.set("a", .integer(2)) } throws: { error in
      if case .readOnly = error as? StoreError { true } else { false }
    }
    engine.setDamaged(false)
    try suite.set("a", .integer(2))
    #expect(suite.snapshot?.readOnly == nil && suite.values?["a"] == .integer(2))
  }

  @Test mutating func damageAndRecoveryAreNoNews() async throws {
    _ = try suite.fetch()
    engine.setDamaged(true)
    _ = try suite.fetch()
    engine.setDamaged(false)
    _ = try suite.fetch()
    #expect(await log.next() == [])
  }

  @Test func suiteThatNeverWasGoodIsAnError() throws {
    engine.setDamaged(true)
    #expect(throws: StoreError.damaged(what: "s.plist")) { try suite.fetch() }
    #expect(throws: StoreError.damaged(what: "s.plist")) { try suite.set("a", .integer(2)) }
    #expect(try store.existingSuite("s") == nil)
  }

  @Test func writersOnManyThreadsLoseNothing() throws {
    let failures = Mutex<[StoreError]>([])
    DispatchQueue.concurrentPerform(iterations: 8) { [suite] writer in
      for round in 0..<50 {
        do throws(StoreError) {
          try suite.update { contents in
            guard case .integer(let count)? = contents.settings["a"]?.value else { return }
            contents.settings["a"] = Setting(.integer(count + 1))
            contents.settings[ExactString("\(writer)-\(round)")] = Setting(.bool(true))
          }
        } catch { failures.withLock { $0.append(error) } }
      }
    }
    #expect(failures.withLock { $0 } == [])
    #expect(suite.values?["a"] == .integer(401) && suite.values?.count == 402)
  }
}
