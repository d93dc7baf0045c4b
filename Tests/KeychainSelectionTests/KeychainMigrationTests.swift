import InMemory
import Model
import SecretMemory
import Store
import StoreConformance
import Testing

@testable import KeychainSelection

@Suite(.timeLimit(.minutes(1))) struct KeychainMigrationTests {
  let old = MemoryKeychain()
  let new = MemoryKeychain()

  private var migration: KeychainMigration { KeychainMigration(from: old, to: new) { _ in nil } }

  private func fill() throws -> Set<ItemIdentity> {
    try old.add(KeychainSamples.full(), "full")
    try old.add(KeychainSamples.generic("a"), "1")
    return try Set(old.items().map(\.identity))
  }

  private func run() throws {
    try migration.run(migration.plan()) { _ in }
  }

  @Test func movesEverything() throws {
    let identities = try fill()
    var steps: [Int] = []
    try migration.run(migration.plan()) { steps.append($0) }
    #expect(steps == [1, 2])
    #expect(try old.items().isEmpty && Set(new.items().map(\.identity)) == identities)
    let full = try #require(try new.items().first { $0.identity == KeychainSamples.full().identity })
    #expect(
      full.attributes == KeychainSamples.full().attributes && full.access == KeychainSamples.full().access)
    #expect(try new.bytes(of: full.id) == Array("full".utf8))
  }

  /// A keychain that is reached in two ways, as Keyhole's own service would be, keeps everything.
  @Test func aKeychainIsNotMovedToItself() throws {
    let identities = try fill()
    let migration = KeychainMigration(from: old, to: old) { _ in nil }
    #expect {
      try migration.run(migration.plan()) { _ in }
    } throws: {
      guard case .notPermitted(let reason)? = ($0 as? KeychainMigration.Failure)?.error else { return false }
      return reason.contains("the same one")
    }
    #expect(try Set(old.items().map(\.identity)) == identities)
    #expect(
      try old.items().map { try old.bytes(of: $0.id) }.sorted { $0.count < $1.count } == [
        Array("1".utf8), Array("full".utf8),
      ])
  }

  /// GNOME Keyring may end between an item and its secret. An item with another secret stays.
  @Test func copyWithoutASecretIsCompleted() throws {
    _ = try fill()
    try new.add(KeychainSamples.generic("a"), "")
    try run()
    let moved = try #require(try new.items().first { $0.identity == KeychainSamples.generic("a").identity })
    #expect(try new.bytes(of: moved.id) == Array("1".utf8) && old.items().isEmpty)
    try old.add(KeychainSamples.generic("a"), "other")
    #expect(throws: KeychainMigration.Failure.self) { try run() }
    #expect(try old.items().count == 1 && new.bytes(of: moved.id) == Array("1".utf8))
  }

  /// `migrate --sealed` leaves no item of the source unsealed in the target.
  @Test func equalItemThatIsThereIsSealedToo() throws {
    try old.add(KeychainSamples.generic("a"), "1")
    try new.add(KeychainSamples.generic("a"), "1")
    let migration = KeychainMigration(from: old, to: new, sealing: true) { _ in nil }
    try migration.run(migration.plan()) { _ in }
    #expect(try new.items().map(\.isSealed) == [true] && old.items().isEmpty)
  }

  @Test func itemThatIsRefusedStopsAll() throws {
    _ = try fill()
    let migration = KeychainMigration(from: old, to: new) { item throws(StoreError) in
      guard item.access.isEmpty else { throw .accessDenied(reason: "refused") }
      return nil
    }
    #expect(throws: KeychainMigration.Failure.self) { try migration.run(migration.plan()) { _ in } }
    #expect(try old.items().count == 2 && new.items().isEmpty)
  }

  @Test func itemWithAPasswordKeepsIt() throws {
    let password = ItemPassword(try KeychainSamples.secret("staple"))
    var item = KeychainSamples.generic("a")
    item.access = [.applicationPassword]
    _ = try old.using(password).add(item, "secret")
    let migration = KeychainMigration(from: old, to: new) { item in
      Permit(item: item.id, for: .read, password: password)
    }
    try migration.run(migration.plan()) { _ in }
    let moved = try #require(try new.items().first).id
    #expect(try old.items().isEmpty && new.using(password).bytes(of: moved) == Array("secret".utf8))
    #expect(throws: StoreError.self) { try new.bytes(of: moved) }
  }

  @Test func planChangesNothing() throws {
    let identities = try fill()
    #expect(try Set(migration.plan().map(\.identity)) == identities)
    #expect(try old.items().count == 2 && new.items().isEmpty)
  }

  @Test func itemThatIsThereOtherwiseStopsAll() throws {
    _ = try fill()
    try new.add(KeychainSamples.generic("a"), "another")
    #expect(throws: KeychainMigration.Failure.self) { try run() }
    #expect(try old.items().count == 2 && new.items().count == 1)
    let kept = try #require(try new.items().first)
    #expect(try new.bytes(of: kept.id) == Array("another".utf8))
  }

  @Test func interruptedOneIsFinished() throws {
    let identities = try fill()
    try new.add(KeychainSamples.generic("a"), "1")
    try run()
    #expect(try old.items().isEmpty && Set(new.items().map(\.identity)) == identities)
  }

  /// Only a Secret Service has two items of one identity. The second one has another name afterwards, also after an interruption that
  /// has left it alone.
  @Test(arguments: [false, true]) func itemsOfOneIdentityAreMoved(isInterrupted: Bool) throws {
    let further = MemoryKeychain()
    let source = JoinedKeychain(old, further)
    var second = KeychainSamples.generic("a")
    second.attributes["application"] = Array("other".utf8)
    try old.add(KeychainSamples.generic("a"), "1")
    try further.add(second, "2")
    let migration = KeychainMigration(from: source, to: new) { _ in nil }
    let summary = try migration.run(migration.plan()) { _ in }
    let renamed = try #require(summary.renamed.first)
    #expect(summary.renamed.count == 1 && renamed.former == second.identity)
    if isInterrupted {
      try further.add(second, "2")
      #expect(try migration.run(migration.plan()) { _ in }.renamed.map(\.present) == [renamed.present])
    }
    #expect(try source.items().isEmpty && new.items().count == 2)
    let present = Dictionary(uniqueKeysWithValues: try new.items().map { ($0.identity, $0) })
    let first = try #require(present[second.identity]?.id)
    let other = try #require(present[renamed.present])
    #expect(try new.bytes(of: first) == Array("1".utf8) && new.bytes(of: other.id) == Array("2".utf8))
    #expect(ServiceItem.attributes(of: other) == ServiceItem.attributes(of: second))
    #expect(ServiceItem.label(of: other) == ServiceItem.label(of: second))
    // Another item with the first one's name is none that was moved before.
    try further.add(KeychainSamples.generic("a"), "3")
    #expect(throws: KeychainMigration.Failure.self) { try migration.run(migration.plan()) { _ in } }
    #expect(try further.items().count == 1 && new.items().count == 2)
  }

  /// Items of programs that a schema alone tells apart are not the same one, and one without a secret is not that of another.
  @Test func itemsWithOtherSchemasAreNoCopies() throws {
    var (first, second) = (KeychainSamples.generic("a"), KeychainSamples.generic("a"))
    first.attributes[SecretSchema.attribute] = Array("org.example.A".utf8)
    second.attributes[SecretSchema.attribute] = Array("org.example.B".utf8)
    try new.add(first, "same")
    let source = CollectedKeychain(in: "work")
    try source.engine.add(second, "same")
    let migration = KeychainMigration(from: source, to: new, collection: \.collection) { _ in nil }
    let summary = try migration.run(migration.plan()) { _ in }
    #expect(summary.renamed.map(\.former) == [second.identity])
    let items = try new.items()
    #expect(
      items.count == 2 && Set(items.map { ServiceItem.attributes(of: $0)[SecretSchema.attribute] }).count == 2
    )
    // The collection stays with the item.
    #expect(items.compactMap { $0.attributes[Item.collectionAttribute] } == [Array("work".utf8)])
  }

  @Test func unreadableSecretStopsAll() throws {
    _ = try fill()
    let failing = FailingKeychain(old)
    failing.failure = ("secret", .locked)
    #expect(throws: KeychainMigration.Failure.self) {
      let migration = KeychainMigration(from: failing, to: new) { _ in nil }
      try migration.run(migration.plan()) { _ in }
    }
    #expect(try old.items().count == 2 && new.items().isEmpty)
  }

  @Test func originalsThatStayTakeTheCopiesBack() throws {
    _ = try fill()
    let failing = FailingKeychain(old)
    failing.failure = ("remove", .unreachable(reason: "gone"))
    #expect(throws: KeychainMigration.Failure.self) {
      let migration = KeychainMigration(from: failing, to: new) { _ in nil }
      try migration.run(migration.plan()) { _ in }
    }
    #expect(try old.items().count == 2 && new.items().isEmpty)
  }
}

/// A keychain of which one call fails.
final class FailingKeychain: KeychainEngine, @unchecked Sendable {
  let name = "failing"
  private let engine: MemoryKeychain
  // Used by one thread.
  var failure: (call: String, error: StoreError)?

  init(_ engine: MemoryKeychain) {
    self.engine = engine
  }

  private func check(_ call: String) throws(StoreError) {
    if let failure, failure.call == call { throw failure.error }
  }

  func items() throws(StoreError) -> [Item] { try engine.items() }
  func changes() throws(StoreError) -> ExternalChanges { try engine.changes() }

  func secret(of item: ItemID) throws(StoreError) -> SecretBytes {
    try check("secret")
    return try engine.secret(of: item)
  }

  func add(_ item: Item, secret: borrowing SecretBytes) throws(StoreError) -> Item {
    try engine.add(item, secret: secret)
  }

  func update(
    _ items: [ItemID], _ body: (inout Item) throws(StoreError) -> Void
  ) throws(StoreError) -> [Item] {
    try engine.update(items, body)
  }

  func rewrite(
    _ item: ItemID, readingSecret: Bool,
    _ body: (inout Item, inout SecretBytes) throws(StoreError) -> Void
  ) throws(StoreError) -> Item {
    try engine.rewrite(item, readingSecret: readingSecret, body)
  }

  func remove(_ items: [ItemID]) throws(StoreError) {
    try check("remove")
    try engine.remove(items)
  }

  func synchronize() throws(StoreError) {}
  func room() throws(StoreError) -> DiskRoom? { nil }
  func problems() -> [Problem] { [] }
}

/// Two keychains that look like one, in which items may have the same identity.
private final class JoinedKeychain: KeychainEngine {
  let name = "joined"
  private let engines: [MemoryKeychain]

  init(_ engines: MemoryKeychain...) { self.engines = engines }

  func items() throws(StoreError) -> [Item] {
    var all: [Item] = []
    for (index, engine) in engines.enumerated() {
      for item in try engine.items() {
        var item = item
        item.id = ItemID(rawValue: "\(index)\(item.id.rawValue)")
        all.append(item)
      }
    }
    return all
  }

  private func place(of id: ItemID) -> (MemoryKeychain, ItemID) {
    (engines[id.rawValue.hasPrefix("0") ? 0 : 1], ItemID(rawValue: String(id.rawValue.dropFirst())))
  }

  func secret(of item: ItemID) throws(StoreError) -> SecretBytes {
    let (engine, id) = place(of: item)
    return try engine.secret(of: id)
  }

  func remove(_ items: [ItemID]) throws(StoreError) {
    for item in items {
      let (engine, id) = place(of: item)
      try engine.remove([id])
    }
  }

  func changes() throws(StoreError) -> ExternalChanges { .none }
  func add(_ item: Item, secret: borrowing SecretBytes) throws(StoreError) -> Item { throw .notFound }

  func update(
    _ items: [ItemID], _ body: (inout Item) throws(StoreError) -> Void
  ) throws(StoreError) -> [Item] { throw .notFound }

  func rewrite(
    _ item: ItemID, readingSecret: Bool, _ body: (inout Item, inout SecretBytes) throws(StoreError) -> Void
  ) throws(StoreError) -> Item { throw .notFound }

  func synchronize() throws(StoreError) {}
  func room() throws(StoreError) -> DiskRoom? { nil }
  func problems() -> [Problem] { [] }
}

/// Items of a Secret Service in one collection.
private final class CollectedKeychain: KeychainEngine {
  let name = "collected"
  let engine = MemoryKeychain()
  private let collection: ExactString

  init(in collection: ExactString) { self.collection = collection }

  func items() throws(StoreError) -> [Item] {
    try engine.items().map { item in
      var item = item
      item.collection = collection
      return item
    }
  }

  func secret(of item: ItemID) throws(StoreError) -> SecretBytes { try engine.secret(of: item) }
  func remove(_ items: [ItemID]) throws(StoreError) { try engine.remove(items) }
  func changes() throws(StoreError) -> ExternalChanges { .none }
  func add(_ item: Item, secret: borrowing SecretBytes) throws(StoreError) -> Item { throw .notFound }

  func update(
    _ items: [ItemID], _ body: (inout Item) throws(StoreError) -> Void
  ) throws(StoreError) -> [Item] { throw .notFound }

  func rewrite(
    _ item: ItemID, readingSecret: Bool, _ body: (inout Item, inout SecretBytes) throws(StoreError) -> Void
  ) throws(StoreError) -> Item { throw .notFound }

  func synchronize() throws(StoreError) {}
  func room() throws(StoreError) -> DiskRoom? { nil }
  func problems() -> [Problem] { [] }
}
