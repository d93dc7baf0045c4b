import InMemory
import Model
import SecretMemory
import Store
import StoreConformance
import Testing

@testable import KeychainSelection

/// Moves from and to a keychain of a cluster.
@Suite(.timeLimit(.minutes(1))) struct SharedMigrationTests {
  private let old = MemoryKeychain()
  private let new = MemoryKeychain()

  private func migration(from source: (any KeychainEngine)? = nil) -> KeychainMigration {
    KeychainMigration(
      from: source ?? old, to: new,
      sharing: { item in
        item.access.isEmpty ? nil : StoreError.unsupported(reason: "a test")
      }
    ) { _ in nil }
  }

  @discardableResult
  private func run(_ migration: KeychainMigration) throws -> KeychainMigration.Summary {
    try migration.run(migration.plan()) { _ in }
  }

  private func rules(_ attributes: [ExactString: String]) -> Item {
    let now = Timestamp(seconds: 0)
    var item = Item(id: ItemID(rawValue: ""), identity: .rules, created: now, modified: now)
    for (name, text) in attributes { item.attributes[name] = Array(text.utf8) }
    return item
  }

  private func rules(in engine: MemoryKeychain) throws -> [ExactString: String]? {
    try engine.items().first { $0.identity == .rules }?.attributes.mapValues {
      String(decoding: $0, as: UTF8.self)
    }
  }

  @Test func itemThatIsRefusedIsNamedAndStays() throws {
    try old.add(KeychainSamples.full(), "full")
    try old.add(KeychainSamples.generic("a"), "1")
    let summary = try run(migration())
    #expect(summary.left.map(\.item) == [KeychainSamples.full().identity])
    #expect(try old.items().map(\.identity) == [KeychainSamples.full().identity])
    #expect(try new.items().map(\.identity) == [KeychainSamples.generic("a").identity])
  }

  /// A removal whose outcome is not known may be made later: so the copies stay.
  @Test func copiesStayWhenTheRemovalFails() throws {
    try old.add(KeychainSamples.generic("a"), "1")
    let failing = FailingKeychain(old)
    failing.failure = ("remove", .unreachable(reason: "gone"))
    let failure = #expect(throws: KeychainMigration.Failure.self) { try run(migration(from: failing)) }
    #expect(failure?.isCopied == true)
    #expect(try old.items().count == 1 && new.items().count == 1)
    failing.failure = nil
    try run(migration(from: failing))
    #expect(try old.items().isEmpty && new.items().count == 1)
  }

  /// Another machine changes an item between its copy and its removal.
  @Test func itemThatIsChangedMeanwhileIsNotRemoved() throws {
    let item = try old.add(KeychainSamples.generic("a"), "1")
    let migration = migration()
    let failure = #expect(throws: KeychainMigration.Failure.self) {
      try migration.run(migration.plan()) { _ in
        _ = try? old.update([item.id]) { $0.attributes["comment"] = [1] }
      }
    }
    #expect(failure?.error.message.contains("was changed while it was moved") == true)
    #expect(try old.items().count == 1)
  }

  @Test func rulesOfFoldersAreJoinedAndTheConfigurationStays() throws {
    try old.add(rules(["keychain": "ask", "configuration/auto-lock": "60"]), "x")
    try new.add(rules(["generic/s": "deny *"]), "x")
    try old.add(KeychainSamples.generic("a"), "1")
    try run(migration())
    #expect(try rules(in: new) == ["keychain": "ask", "generic/s": "deny *"])
    #expect(try rules(in: old) == ["configuration/auto-lock": "60"])
    try run(migration())
    #expect(try rules(in: old) == ["configuration/auto-lock": "60"])
  }

  @Test func otherRulesOfAFolderStopAll() throws {
    try old.add(rules(["keychain": "ask"]), "x")
    try new.add(rules(["keychain": "deny *"]), "x")
    try old.add(KeychainSamples.generic("a"), "1")
    #expect(throws: KeychainMigration.Failure.self) { try run(migration()) }
    #expect(try rules(in: new) == ["keychain": "deny *"] && rules(in: old) == ["keychain": "ask"])
    #expect(try old.items().count == 2 && new.items().count == 1)
  }
}
