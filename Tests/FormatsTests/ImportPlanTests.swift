import Formats
import ImportExport
import InMemory
import Model
import SecretMemory
import Store
import Suites
import Testing

/// Two items of one name, and values that are there already.
@Suite struct ImportPlanTests {
  private let folder = SuiteFolder.make()
  private let settings: SettingsStore
  private let keychain = KeychainStore(engine: MemoryKeychain())

  init() {
    settings = SettingsStore(engine: PropertyListFolder(folder: folder, stateFolder: folder))
  }

  private func entry(
    _ account: String, _ secret: String, _ attributes: [(String, String)] = [],
    companions: [(String, String)] = []
  ) throws -> ItemEntry {
    let bytes = try source(Array(secret.utf8))
    var entry = ItemEntry(
      .generic(service: "s", account: ExactString(account)),
      attributes.map { ItemEntry.Attribute("user." + $0, $1) }, SecretSlice(bytes, bytes.whole))
    for (name, secret) in companions {
      let bytes = try source(Array(secret.utf8))
      entry.companions.append(.init(name: name, secret: SecretSlice(bytes, bytes.whole)))
    }
    return entry
  }

  private func plan(_ items: [ItemEntry], _ change: (inout ImportOptions) -> Void = { _ in }) throws
    -> ImportPlan
  {
    var (contents, options) = (Contents(), ImportOptions())
    contents.items = items
    change(&options)
    return try ImportPlan(contents, settings: settings, keychain: keychain, options)
  }

  private func lines(_ plan: ImportPlan) -> [String] {
    plan.lines.map { "\($0.step.rawValue) \($0.path.dropFirst(19))" }
  }

  @Test func anotherSecretOfOneNameIsNumbered() throws {
    let items = [
      try entry("u", "1"), try entry("u", "2", companions: [("otp", "x")]), try entry("u", "1"),
      try entry("", "3"),
      try entry("", "4"),
    ]
    let numbered = try plan(items)
    #expect(lines(numbered) == ["new u", "new u (2)", "new u (2)%2Fotp", "new %", "new (2)"])
    #expect(numbered.summary.same == 1 && numbered.summary.numbered.count == 2)
    let refused = try plan(items) { $0.duplicates = .refuse }
    guard case .duplicates(let paths)? = refused.conflict else {
      Issue.record("no conflict")
      return
    }
    #expect(paths.count == 2)
  }

  @Test func equalSecretsAreMerged() throws {
    let items = [
      try entry("u", "1", [("comment", "a"), ("url", "x")]),
      try entry("u", "1", [("comment", "b"), ("url", "y")], companions: [("otp", "o")]), try entry("u", "2"),
    ]
    let merged = try plan(items) { $0.duplicates = .merge }
    #expect(lines(merged) == ["new u", "new u%2Fotp", "new u (2)"])
    #expect(merged.summary.merged.count == 1)
    try run(merged)
    let item = try #require(try keychain.read { $0[.generic(service: "s", account: "u")] }.first)
    #expect(item.attributes["comment"] == Array("a\nb".utf8) && item.attributes["url"] == Array("x".utf8))
    #expect(item.attributes["url-2"] == Array("y".utf8))
    let companion = try #require(try keychain.read { $0[.generic(service: "s", account: "u/otp")] }.first)
    #expect(companion.attributes["belongsTo"] == Array("keychain/generic/s/u".utf8))
  }

  private func run(_ plan: ImportPlan) throws {
    defer { SuiteFolder.remove(folder) }
    let run = ImportRun(settings: settings, keychain: keychain, stateFolder: folder) {
      [keychain] (present, new, path) throws(StoreError) in
      guard let present else { return try keychain.permission(forNew: new, path: path, by: .current) }
      return try keychain.permission(for: present, to: .readWrite, path: path, by: .current)
    }
    try run.apply(plan) {}
  }

  /// A comment, a flag and a class of accessibility are values like the secret.
  @Test(arguments: [
    ("comment", "two"), ("keyhole.accessible", "afterFirstUnlock"), ("keyhole.label", "Other"),
  ])
  func anotherAttributeIsAConflict(name: String, value: String) throws {
    try run(plan([entry("u", "1", [("comment", "one")])]))
    let other = try entry("u", "1", [(name, value)])
    #expect(lines(try plan([other])) == ["conflict u"])
    #expect(lines(try plan([other]) { $0.conflicts = .keep }) == ["keep u"])
    try run(plan([other]) { $0.conflicts = .replace })
    #expect(lines(try plan([other])) == ["same u"])
    let item = try #require(try keychain.read { $0[.generic(service: "s", account: "u")] }.first)
    #expect(item.attributes["comment"] == Array((name == "comment" ? "two" : "one").utf8))
  }

  @Test func whatTheImportDoesNotNameStays() throws {
    try run(plan([entry("u", "1", [("comment", "one"), ("keyhole.accessible", "afterFirstUnlock")])]))
    #expect(lines(try plan([entry("u", "1")])) == ["same u"])
    try run(plan([entry("u", "2")]) { $0.conflicts = .replace })
    let item = try #require(try keychain.read { $0[.generic(service: "s", account: "u")] }.first)
    #expect(item.accessibility == .afterFirstUnlock && item.attributes["comment"] == Array("one".utf8))
    let secret = try keychain.secret(of: item.id)
    #expect(unsafe secret.withUnsafeBytes { unsafe Array($0) } == Array("2".utf8))
  }

  @Test func companionsAreAsProtectedAsTheirItem() throws {
    try run(
      plan([
        entry(
          "u", "1", [("keyhole.access", "userPresence"), ("keyhole.accessible", "afterFirstUnlock")],
          companions: [("otp", "o")])
      ]))
    let companion = try #require(try keychain.read { $0[.generic(service: "s", account: "u/otp")] }.first)
    #expect(companion.access == [.userPresence] && companion.accessibility == .afterFirstUnlock)
  }

  /// The third secret can't be stored: what was before it is taken back.
  @Test func allOfItOrNothing() throws {
    let large = String(repeating: "x", count: 1_100_000)
    #expect(throws: ImportExportError.self) { try plan([entry("a", "1"), entry("b", large)]) }
    #expect(try keychain.read { $0.count } == 0)
  }
}
