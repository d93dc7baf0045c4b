import ClusterInMemory
import ClusterRecords
import EtcdClient
import Model
import Store
import StoreConformance
import Testing
import VaultRecords

@testable import Cluster

/// The values that settings of a cluster had.
@Suite(.timeLimit(.minutes(1))) struct ClusterHistoryTests {
  private let store: TestStore

  init() throws { store = try TestStore() }

  /// Changes settings as a process of its own does: within a second, one process keeps the value before its first change only.
  private func change(
    _ retention: HistoryRetention? = .standard, _ body: (ClusterSuites) throws -> Void
  ) throws {
    let suites = try store.suites()
    defer { suites.close() }
    if let retention { suites.keep(retention) }
    try body(suites)
  }

  private func set(
    _ key: ExactString, _ value: SettingValue?, _ retention: HistoryRetention? = .standard
  ) throws {
    try change(retention) { try $0.set(key, value, in: "app") }
  }

  private func make() throws { try change { _ = try $0.create("app") } }

  private var entries: Int {
    store.cluster.contents.filter { String(decoding: $0.key, as: UTF8.self).contains("/s/set/") }.count
  }

  @Test func whatWasReplacedOrRemovedIsKept() throws {
    try make()
    try set("a", .integer(1))
    try set("a", .integer(2))
    try set("b", .string("x"))
    try set("a", nil)
    try change(nil) { suites in
      let versions = try suites.versions(of: "app")
      #expect(versions.map(\.key) == ["a", "a"])
      #expect(versions.map(\.value) == [.integer(1), .integer(2)])
      #expect(versions.map(\.changes) == [.value, .removal])
      #expect(versions[0].number < versions[1].number)
      #expect(try suites.suitesWithVersions() == ["app"])
      #expect(try suites.read("app")?.settings.keys == ["b"])
      try suites.rename("app", to: "other")
      #expect(try suites.versions(of: "other").count == 2)
      #expect(try suites.versions(of: "app").isEmpty)
    }
  }

  /// More than one change may have comes back in several, and a key that was set meanwhile stays.
  @Test func moreThanAChangeTakesIsBroughtBack() throws {
    try make()
    let suites = try store.suites()
    defer { suites.close() }
    let settings = SettingsStore(engine: suites)
    let text = String(repeating: "x", count: 10_000)
    let versions = (0..<300).map { number in
      SettingVersion(
        number: 1, key: ExactString("key\(number)"), value: .string(ExactString(text)), replaced: .now,
        changes: .removal)
    }
    _ = try suites.update("app", known: nil) { $0.settings["key7"] = Setting(.integer(7)) }
    #expect(throws: StoreError.self) { try settings.restore(versions, in: "app") }
    try settings.restore(versions, in: "app", onlyMissing: true)
    let contents = try #require(try suites.read("app")).settings
    #expect(contents.count == 300 && contents["key7"]?.value == .integer(7))
    #expect(contents["key299"]?.value == .string(ExactString(text)))
  }

  /// A slow clock makes no value too old to be kept; a time that a person has set makes none too young.
  @Test(
    arguments: [
      // Stored, an earlier one replaced, the collection changed, another device heard: seconds from now; the time of replacement; nil: now.
      (-10, -20, -5, nil, nil), (900, -20, 1000, nil, 900), (900, 950, 1000, nil, 950),
      (5000, -20, 100, nil, 100), (nil, nil, 1000, nil, nil), (-10, 700, 700, nil, 700),
      // A clock that is slow by forty days, which has stored the value itself.
      (-10, nil, 3_456_000, 3_456_005, 3_456_000), (-10, -20, -5, -100, nil),
      // One that was fast once, and is right since, counts for nothing.
      (-10, 1_000_000_000, 1_000_000_000, 60, 60), (1_000_000_000, nil, 1_000_000_000, -60, nil),
    ] as [(Int64?, Int64?, Int64, Int64?, Int64?)])
  func aStateIsNotReplacedBeforeItWasStored(
    _ stored: Int64?, _ earlier: Int64?, _ changed: Int64, _ others: Int64?, _ expected: Int64?
  ) {
    let now = Timestamp.now
    func time(_ offset: Int64) -> Timestamp { Timestamp(seconds: now.seconds + offset) }
    let end = Timestamp.end(
      stored: stored.map(time), after: earlier.map(time), time(changed), others: others.map(time))
    if let expected { #expect(end == time(expected)) } else { #expect(end >= now && end <= .now) }
  }

  /// A history that can't be read is no empty one.
  @Test func aStoreThatCantBeReadIsNoEmptyHistory() throws {
    try make()
    try set("a", .integer(1))
    try set("a", .integer(2))
    let suites = try store.suites()
    defer { suites.close() }
    let closed = ClusterSuites(
      ClusterSession(
        suites.session.cluster, store.paths, ClusterKeyring(store: store.id), device: .random(),
        seen: SeenState()),
      propertyLists: suites.propertyLists)
    defer { closed.close() }
    expect(.locked) { _ = try closed.versions(of: "app") }
    expect(.locked) { _ = try closed.suitesWithVersions() }
  }

  @Test func nothingIsKeptWithoutARetention() throws {
    try make()
    try set("a", .integer(1), nil)
    try set("a", .integer(2), nil)
    try set("a", .integer(3), HistoryRetention.none)
    try change { suites in
      let found = try suites.versions(of: "app")
      #expect(found.isEmpty)
    }
    #expect(entries == 1)
  }

  @Test func ofChangesWithinASecondTheFirstIsKept() throws {
    try make()
    try change { suites in
      for number in 0..<5 as Range<Int128> { try suites.set("a", .integer(number), in: "app") }
      #expect(try suites.versions(of: "app").map(\.value) == [.integer(0)])
    }
  }

  @Test func noMoreIsKeptThanTheRetentionSays() throws {
    try make()
    let retention = HistoryRetention(versions: 3, days: 30)
    for number in 0..<9 as Range<Int128> { try set("a", .integer(number), retention) }
    try change(retention) { suites in
      let found = try suites.versions(of: "app")
      #expect(found.map(\.value) == [.integer(5), .integer(6), .integer(7)])
    }
    #expect(entries == 4, "the others are gone from the cluster")
  }

  @Test func purgedValuesAreGone() throws {
    try make()
    for number in 0..<3 as Range<Int128> {
      try set("a", .integer(number))
      try set("b", .integer(number))
    }
    try change { suites in
      #expect(try suites.purge("app", "a") == 2)
      #expect(try suites.versions(of: "app").map(\.key) == ["b", "b"])
      #expect(try suites.purge(["b"], beforeRemovalFrom: "app") == 2)
      try suites.set("b", nil, in: "app")
      suites.endPurge(of: "app", isFollowed: false)
      #expect(try suites.versions(of: "app").isEmpty)
      #expect(entries == 1)
      #expect(try suites.purge("app", nil) == 0)
    }
  }

  @Test func versionsOfManySettingsArePurged() throws {
    try make()
    let names = (0..<150).map { ExactString("k\($0)") }
    for value in 0..<2 {
      try change { suites in
        _ = try suites.update("app", known: nil) { contents in
          for name in names { contents.settings[name] = Setting(.integer(Int128(value))) }
        }
      }
    }
    try change { suites in
      #expect(try suites.versions(of: "app").count == 150)
      for name in names.prefix(70) { try suites.set(name, .integer(7), in: "app") }
      #expect(try suites.versions(of: "app").count == 220)
      #expect(try suites.purge("app", nil) == 220)
    }
    #expect(entries == 150)
  }

  @Test func aSuiteWithoutHistoryKeepsNothing() throws {
    try make()
    try set("a", .integer(1))
    try set("a", .integer(2))
    try change { suites in
      #expect(suites.keepsVersions(of: "app"))
      try suites.setKeepsVersions(false, of: "app")
      #expect(try suites.versions(of: "app").isEmpty)
    }
    try set("a", .integer(3))
    try change { suites in
      #expect(!suites.keepsVersions(of: "app"))
      #expect(try suites.versions(of: "app").isEmpty)
      try suites.setKeepsVersions(true, of: "app")
    }
    try set("a", .integer(4))
    try change { suites in
      let found = try suites.versions(of: "app")
      #expect(found.map(\.value) == [.integer(3)])
    }
  }

  /// As with the suites of one machine: what was removed by mistake can be brought back.
  @Test func theValuesOfARemovedSuiteAreKept() throws {
    try make()
    try set("a", .integer(1))
    try set("a", nil)
    #expect(entries == 1)
    try change { try $0.remove("app") }
    try change { suites in
      let (names, present) = (try suites.suiteNames(), try suites.suites())
      #expect(names.isEmpty && present.isEmpty)
      #expect(try suites.read("app") == nil)
      #expect(try suites.suitesWithVersions() == ["app"])
      #expect(try suites.versions(of: "app").map(\.value) == [.integer(1)])
      expect(.notFound) { try suites.remove("app") }
      expect(.notFound) { try suites.rename("app", to: "other") }
      expect(.notPermitted(reason: "")) { try suites.discard("app") }
    }
    // A suite of that name has them again.
    try make()
    try set("a", .integer(2))
    try set("a", .integer(3))
    try change { suites in
      #expect(try suites.versions(of: "app").map(\.value) == [.integer(1), .integer(2)])
      let value = try suites.value("a", in: "app")
      #expect(value == .integer(3))
      expect(.exists) { _ = try suites.create("app") }
    }
  }

  @Test func aSuiteWithoutValuesGoesWithAllThatIsStored() throws {
    let before = store.cluster.contents.count
    try make()
    try set("a", .integer(1))
    try set("a", nil)
    try change { suites in
      try suites.purge("app", nil)
      try suites.remove("app")
    }
    #expect(store.cluster.contents.count == before)
    // One that is purged after its removal.
    try make()
    try set("a", .integer(1))
    try set("a", nil)
    try change { suites in
      try suites.remove("app")
      #expect(try suites.purge("app", "a") == 1)
      #expect(try suites.suitesWithVersions().isEmpty)
    }
    #expect(store.cluster.contents.count == before)
    // One of which nothing is to be kept any more.
    try make()
    try set("a", .integer(1))
    try set("a", nil)
    try change { try $0.remove("app") }
    try change(HistoryRetention(versions: 0, days: 30)) { suites in
      _ = try suites.versions(of: "app")
      _ = suites.prune()
    }
    #expect(store.cluster.contents.count == before)
  }

  /// A suite that gets the name of a removed one, and is removed too.
  @Test func oneRemovedSuiteOfANameIsKept() throws {
    try make()
    try set("a", .integer(1))
    try set("a", nil)
    try change { suites in
      try suites.remove("app")
      _ = try suites.create("other")
      try suites.set("b", .integer(2), in: "other")
    }
    try change { try $0.set("b", nil, in: "other") }
    try change { suites in
      try suites.rename("other", to: "app")
      #expect(try suites.versions(of: "app").map(\.key) == ["b"])
      try suites.remove("app")
      #expect(try suites.versions(of: "app").map(\.key) == ["b"])
    }
    #expect(entries == 1)
  }

  @Test func largeValuesAreNotKept() throws {
    try make()
    try set("a", .data([UInt8](repeating: 1, count: 70_000)))
    try set("a", .integer(2))
    try set("a", .integer(3))
    try change { suites in
      let found = try suites.versions(of: "app")
      #expect(found.map(\.value) == [.integer(2)])
    }
  }

  @Test func aVersionThatIsReplacedByAnotherIsMissed() throws {
    try make()
    try set("a", .string("MARKER"))
    let first = try store.puts { try set("a", .integer(2)) }
    let second = try store.puts { try set("a", .integer(3)) }
    func version(_ values: [KeyValue]) throws -> KeyValue {
      try #require(
        values.first { $0.version == 1 && String(decoding: $0.key, as: UTF8.self).contains("/s/set/") })
    }
    var forged = try version(second)
    forged.value = try version(first).value
    store.cluster.forge([forged])
    try change { suites in expect(.damaged(what: "")) { _ = try suites.read("app") } }
    for value in store.cluster.contents {
      #expect(!String(decoding: value.value, as: UTF8.self).contains("MARKER"))
    }
  }
}
