import GRDB
import Model
import SecretMemory
import Store
import StoreConformance
import Testing

@testable import Vault
@testable import VaultDatabase
@testable import VaultRecords

/// Changes of others in a vault of many items, of which only changed leaves are read.
@Suite(.timeLimit(.minutes(2))) struct VaultLeafChangesTests {
  private let vault: LargeVault

  init() throws { vault = try LargeVault() }

  @Test func changeOfAnotherIsReadByItsLeafAlone() throws {
    let (engine, other) = (try vault.openRead(), try vault.open())
    try other.set(vault.ids[7], [1, 2])
    try other.remove([vault.ids[8]])
    let added = try other.add(KeychainSamples.generic("added"), "1")
    var news: [ItemID: Int?] = [:]
    let read = try engine.read { () throws in
      guard case .items(let items) = try engine.changes() else { return }
      for item in items { news[item.id] = .some(item.item?.size) }
    }
    #expect(news == [vault.ids[7]: 2, vault.ids[8]: nil, added.id: 1])
    #expect(read.items == 2 && read.rows <= 3 * 64)
    if case .none = try engine.changes() {} else { Issue.record("once") }
  }

  @Test func ownChangesAreNoNewsAndNothingIsReadForThem() throws {
    let engine = try vault.openRead()
    try engine.set(vault.ids[7], [1, 2])
    try engine.remove([vault.ids[8]])
    try engine.addMany((0..<200).map { ExactString("new \($0)") })
    let read = try engine.read { () throws in
      if case .none = try engine.changes() {} else { Issue.record("no news") }
    }
    #expect(read.rows == 0 && read.items == 0)
    try vault.open().set(vault.ids[9], [1])
    let later = try engine.read { () throws in
      #expect(try engine.changes().items()?.map(\.id) == [vault.ids[9]])
    }
    #expect(later.items == 1 && later.rows <= 64)
  }

  /// Whatever two processes do, each knows the items as they are.
  @Test(arguments: 0..<4) func changesAddUp(_ seed: UInt64) throws {
    var random = Numbers(state: seed &* 7919 + 1)
    let (engine, other) = (try vault.openRead(), try vault.open())
    var (known, present, next) = (try engine.items(), vault.ids, 0)
    for _ in 0..<25 {
      let actor = Bool.random(using: &random) ? engine : other
      var own: [ItemNews] = []
      switch Int.random(in: 0..<5, using: &random) {
      case 0:
        let added = try actor.addMany(
          (0..<Int.random(in: 1...150, using: &random)).map { ExactString("n\(next + $0)") })
        next += 1000
        present += added.map(\.id)
        own = added.map { ItemNews($0.id, $0, origin: .local) }
      case 1:
        present.shuffle(using: &random)
        let gone = Array(present.prefix(Int.random(in: 1...100, using: &random)))
        try actor.remove(gone)
        present.removeFirst(gone.count)
        own = gone.map { ItemNews($0, nil, origin: .local) }
      case 2:
        next += 1
        let name = ExactString("moved \(next)")
        guard let id = present.randomElement(using: &random) else { break }
        let moved = try actor.update([id]) { item throws(StoreError) in
          item.identity = .generic(service: name, account: "me")
        }
        own = moved.map { ItemNews($0.id, $0, origin: .local) }
      default:
        guard let id = present.randomElement(using: &random) else { break }
        let item = try actor.set(id, [UInt8](repeating: 1, count: next % 50))
        own = [ItemNews(id, item, origin: .local)]
      }
      if actor === engine { known = ExternalChanges(own).items(since: known) ?? known }
      guard Bool.random(using: &random) else { continue }
      let changes = try engine.changes()
      if case .everything = changes { Issue.record("not by name") }
      known = changes.items(since: known) ?? known
      #expect(Set(known.map(\.id)) == Set(present))
    }
    known = try engine.changes().items(since: known) ?? known
    #expect(Set(known) == Set(try vault.openRead().items()))
    try #require(engine.verification).verify()
    #expect(engine.trust == .trusted)
    if case .none = try engine.changes() {} else { Issue.record("nothing was wrong") }
  }

  @Test func newPassphraseReportsEverything() throws {
    let engine = try vault.openRead()
    let none = try SecretBytes()
    try vault.open().change(to: .keyFile, none, present: none, cost: .least)
    #expect(try engine.changes().items()?.count == 300)
    try vault.open().set(vault.ids[9], [1])
    #expect(try engine.changes().items()?.map(\.id) == [vault.ids[9]])
  }

  @Test func rulesThatAreStoredByAnotherAreKnown() throws {
    let engine = try vault.openRead()
    let store = KeychainStore(engine: try vault.open())
    try store.setRules("deny everyone", of: .keychain, nil)
    guard case .items(let news) = try engine.changes() else {
      Issue.record("not by name")
      return
    }
    #expect(news.map { $0.item?.identity } == [.rules])
    try vault.fixture.edit(
      "UPDATE item SET sealed = zeroblob(9) WHERE uuid = \(vault.fixture.literal(news[0].id))")
    try #require(engine.verification).verify()
    _ = try engine.changes()
    #expect(engine.areRulesMissing && engine.isDistrusted)
  }
}

// MARK: - Attacks

extension VaultLeafChangesTests {
  private static let edits = [
    "DELETE FROM item WHERE uuid = ID", "UPDATE item SET revision = 1 WHERE uuid = ID",
    "UPDATE item SET uuid = randomblob(16) WHERE uuid = ID",
    "UPDATE item SET tag = zeroblob(16) WHERE uuid = ID",
    "INSERT INTO item SELECT randomblob(16), tag, revision + 1, sealed FROM item WHERE uuid = ID",
    "INSERT INTO item SELECT randomblob(15), tag, revision + 1, sealed FROM item WHERE uuid = ID",
  ]

  /// An edit that leaves the manifest as it was is found by the comparison of all rows.
  @Test(arguments: edits) func editAloneIsFound(_ edit: String) throws {
    let engine = try vault.openRead()
    try vault.edit(edit, 7)
    _ = try engine.changes()
    try #require(engine.verification).verify()
    #expect(engine.isDistrusted && engine.verification == nil)
    let news = try #require(try engine.changes().items())
    #expect(Set(news) == Set(try vault.openRead().items()))
    #expect(failure { try engine.set(vault.ids[0], [1]) }?.kind == "readOnly")
  }

  /// Of a leaf that has not changed nothing is read, and the comparison of all rows finds the edit.
  @Test(arguments: edits) func editBesideAChangeOfAnotherLeafIsFound(_ edit: String) throws {
    let (engine, other) = (try vault.openRead(), try vault.open())
    let number = try vault.numberOfAnotherLeaf(than: 7, other)
    try vault.edit(edit, 7)
    try other.set(vault.ids[number], [1, 2, 3])
    #expect(try engine.changes().items()?.map(\.id) == [vault.ids[number]])
    try #require(engine.verification).verify()
    #expect(engine.isDistrusted)
    #expect(try engine.changes().items()?.contains { $0.id == vault.ids[number] } == true)
  }

  @Test(arguments: edits) func editOfTheChangedLeafIsFoundAtOnce(_ edit: String) throws {
    let (engine, other) = (try vault.openRead(), try vault.open())
    let leaf = try vault.leaf(of: 7, other)
    let beside = try #require(
      try vault.ids.indices.first { try $0 != 7 && vault.leaf(of: $0, other) == leaf })
    try other.set(vault.ids[beside], [1, 2, 3])
    try vault.edit(edit, 7)
    guard case .everything = try engine.changes() else {
      Issue.record("by name")
      return
    }
    #expect(engine.isDistrusted)
  }

  /// A write proves the leaf that it changes, and leaves others as they are to be found.
  @Test func writeTakesOverNoEditedRow() throws {
    let engine = try vault.openRead()
    let leaf = try vault.leaf(of: 7, engine)
    let beside = try #require(
      try vault.ids.indices.first { try $0 != 7 && vault.leaf(of: $0, engine) == leaf })
    let other = try vault.numberOfAnotherLeaf(than: 7, engine)
    try vault.edit("DELETE FROM item WHERE uuid = ID", 7)
    #expect(failure { try engine.set(vault.ids[beside], [1]) }?.kind == "readOnly")
    try engine.set(vault.ids[other], [1])
    _ = try engine.changes()
    try #require(engine.verification).verify()
    #expect(engine.isDistrusted)
    #expect(try vault.openRead().isDistrusted)
  }

  /// An older row with its secret, put back, is not read for the one that is known.
  @Test func rowThatWasPutBackIsNotRead() throws {
    let copy = "ATTACH '\(vault.fixture.root)/old.db' AS o"
    try vault.fixture.edit(
      copy, "CREATE TABLE o.item AS SELECT * FROM main.item",
      "CREATE TABLE o.secret AS SELECT * FROM main.secret")
    try vault.open().set(vault.ids[7], Array("newer".utf8))
    let engine = try vault.openRead()
    try vault.fixture.edit(
      copy, "DELETE FROM main.secret", "INSERT INTO main.secret SELECT * FROM o.secret",
      "INSERT OR REPLACE INTO main.item SELECT * FROM o.item WHERE uuid = \(vault.fixture.literal(vault.ids[7]))"
    )
    _ = try? engine.bytes(of: vault.ids[7])
    #expect(engine.isDistrusted)
    #expect(try engine.changes().items()?.count == 300)
  }

  @Test func olderDatabaseInPlaceIsFoundAtOnce() throws {
    let before = contents(of: vault.fixture.database)
    try vault.open().set(vault.ids[7], [1])
    let engine = try vault.openRead()
    try vault.fixture.overwrite(with: before)
    guard case .everything = try engine.changes() else {
      Issue.record("by name")
      return
    }
    #expect(engine.isDistrusted)
  }

  @Test func damagedMetadataAreFound() throws {
    let engine = try vault.openRead()
    try vault.edit("UPDATE item SET sealed = zeroblob(length(sealed)) WHERE uuid = ID", 7)
    _ = try engine.changes()
    try #require(engine.verification).verify()
    #expect(engine.trust == .trusted && engine.damagedEntries.count == 1)
    #expect(try engine.changes().items()?.count == 299)
    if case .none = try engine.changes() {} else { Issue.record("once") }
  }

  @Test func treeOfDigestsThatWasEditedProvesNothing() throws {
    let engine = try vault.openRead()
    try vault.fixture.edit("UPDATE digest SET leaves = randomblob(length(leaves))")
    _ = try engine.changes()
    try #require(engine.verification).verify()
    #expect(engine.isDistrusted)
  }
}

/// Numbers that are the same in each run (splitmix64).
private struct Numbers: RandomNumberGenerator {
  var state: UInt64

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var value = state
    value = (value ^ value >> 30) &* 0xBF58_476D_1CE4_E5B9
    value = (value ^ value >> 27) &* 0x94D0_49BB_1331_11EB
    return value ^ value >> 31
  }
}
