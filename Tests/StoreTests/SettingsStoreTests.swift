import Model
import StoreConformance
import Testing

@testable import Store

@Suite(.timeLimit(.minutes(1))) struct SettingsStoreTests {
  let engine = MemorySuites()
  let store: SettingsStore
  var log: ChangeLog

  init() {
    store = SettingsStore(engine: engine)
    log = ChangeLog(store.feed)
  }

  @Test mutating func suiteIsMadeRenamedAndRemoved() async throws {
    try store.createSuite("a")
    #expect(try store.suiteNames() == ["a"] && store.suite("a").snapshot?.entries.isEmpty == true)
    try store.renameSuite("a", to: "b")
    #expect(try store.suiteNames() == ["b"] && store.existingSuite("a") == nil)
    _ = try store.suite("b").fetch()
    try store.removeSuite("b")
    #expect(try store.suiteNames() == [])
    #expect(
      await log.next() == [
        Change(.created, .suite("a"), origin: .local),
        Change(.moved, .suite("b"), previous: .suite("a"), origin: .local),
        Change(.deleted, .suite("b"), origin: .local),
      ])
  }

  @Test func takenAndMissingNamesAreRefused() throws {
    try store.createSuite("a")
    try store.createSuite("b")
    try store.suite("b").set("k", .bool(true))
    #expect(throws: StoreError.exists) { try store.createSuite("a") }
    #expect(throws: StoreError.exists) { try store.renameSuite("a", to: "b") }
    #expect(throws: StoreError.notEmpty) { try store.removeSuite("b") }
    #expect(throws: StoreError.notFound) { try store.removeSuite("c") }
    #expect(throws: StoreError.notFound) { try store.renameSuite("c", to: "d") }
    #expect(Set(try store.suiteNames()) == ["a", "b"])
  }

  @Test func oneNameIsOneObject() {
    #expect(store.suite("a") === store.suite("a") && store.suite("é") !== store.suite("e\u{301}"))
  }

  @Test mutating func namesThatNobodyHasLeaveNothingBehind() async throws {
    for index in 0..<100 { #expect(try store.existingSuite(ExactString("\(index)")) == nil) }
    store.refreshAll()
    #expect(try store.suiteNames() == [] && engine.suites().isEmpty)
    #expect(await log.next() == [])
  }

  @Test mutating func valuesGoWithARenamedSuite() async throws {
    try store.createSuite("a")
    try store.suite("a").set("k", .bool(true))
    _ = await log.next()
    try store.renameSuite("a", to: "b")
    #expect(try store.suite("b").fetch()?.entries["k"]?.value == .bool(true))
    #expect(try store.suite("a").fetch() == nil)
    #expect(await log.next().map(\.kind) == [.moved])
  }

  @Test mutating func removedAndMadeAgainHasNoOldValues() async throws {
    engine.replace("a", with: ["k": .bool(true)])
    _ = try store.suite("a").fetch()
    engine.replace("a", with: nil)
    try store.createSuite("a")
    #expect(try store.suite("a").fetch()?.entries.isEmpty == true)
  }

  @Test func suiteMadeOutsideIsFound() throws {
    #expect(try store.existingSuite("a") == nil)
    engine.replace("a", with: [:])
    #expect(try store.existingSuite("a") != nil && store.suiteNames() == ["a"])
  }

  @Test func damagedFilesAreNoSuites() throws {
    let fragile = FragileSuites()
    let store = SettingsStore(engine: fragile)
    fragile.good.replace("a", with: [:])
    fragile.setDamaged(true)
    #expect(try store.suiteNames() == [] && store.existingSuite("a") == nil)
    fragile.setDamaged(false)
    #expect(try store.suiteNames() == ["a"])
  }

  @Test mutating func refreshOfOneSuiteLeavesTheOthers() async throws {
    engine.replace("a", with: ["k": .integer(1)])
    engine.replace("b", with: ["k": .integer(1)])
    _ = try store.suiteNames()
    engine.replace("a", with: ["k": .integer(2)])
    engine.replace("b", with: ["k": .integer(2)])
    store.refresh("a")
    #expect(await log.next().map(\.subject) == [.key(suite: "a", key: "k")])
    store.refreshAll()
    #expect(await log.next().map(\.subject) == [.key(suite: "b", key: "k")])
  }

  @Test mutating func suiteMadeOutsideIsNewsOnceSomebodyFollows() async throws {
    engine.replace("old", with: ["k": .integer(1)])
    store.beginFollowing()
    #expect(await log.next() == [])
    engine.replace("new", with: ["k": .integer(1)])
    store.refresh("new")
    store.refresh("new")
    #expect(
      await log.next() == [
        Change(.created, .suite("new"), origin: .external),
        Change(.created, .key(suite: "new", key: "k"), origin: .external),
      ])
    engine.replace("other", with: [:])
    engine.replace("old", with: nil)
    store.refreshAll()
    #expect(
      Set(await log.next()) == [
        Change(.created, .suite("other"), origin: .external),
        Change(.deleted, .key(suite: "old", key: "k"), origin: .external),
        Change(.deleted, .suite("old"), origin: .external),
      ])
  }

  /// It is read when the mount is ready already.
  @Test mutating func suiteThatIsChangedBeforeItWasRead() async throws {
    engine.replace("old", with: ["k": .integer(1), "l": .integer(1)])
    engine.replace("gone", with: ["k": .integer(1)])
    engine.replace("same", with: ["k": .integer(1)])
    store.noteSuites()
    engine.replace("old", with: ["k": .integer(2), "l": .integer(1)])
    engine.replace("gone", with: nil)
    for name in ["old", "gone", "same"] as [ExactString] { store.refresh(name) }
    #expect(
      await log.next() == [
        Change(.modified, .key(suite: "old", key: "k"), origin: .external),
        Change(.deleted, .suite("gone"), origin: .external),
      ])
    engine.replace("gone", with: [:])
    store.refresh("gone")
    #expect(await log.next() == [Change(.created, .suite("gone"), origin: .external)])
  }

  @Test mutating func nobodyElseIsTakenForTheAuthorOfOwnSuites() async throws {
    store.beginFollowing()
    let watcher = Task { [store] in
      while !Task.isCancelled {
        store.refreshAll()
        await Task.yield()
      }
    }
    for round in 0..<200 {
      let (name, newName) = (ExactString("a\(round)"), ExactString("b\(round)"))
      try store.createSuite(name)
      try store.renameSuite(name, to: newName)
      try store.removeSuite(newName)
    }
    watcher.cancel()
    await watcher.value
    let changes = await log.next()
    #expect(changes.filter { $0.origin == .external } == [])
    #expect(changes.count == 600)
  }

  @Test func suitesThatExchangeTheirNamesDoNotWaitForEachOther() async throws {
    try store.createSuite("a")
    await withTaskGroup(of: Void.self) { group in
      for (old, new) in [("a", "b"), ("b", "a")] as [(ExactString, ExactString)] {
        group.addTask { [store] in for _ in 0..<200 { try? store.renameSuite(old, to: new) } }
      }
    }
    #expect(try store.suiteNames().count == 1)
  }
}
