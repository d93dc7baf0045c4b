import GRDB
import Model
import SecretMemory
import StoreConformance
import Testing

@testable import Store
@testable import Vault
@testable import VaultDatabase
@testable import VaultRecords

/// Single items of a vault of which not all were read.
@Suite(.timeLimit(.minutes(2))) struct VaultLookupTests {
  private let fixture: VaultFixture
  private let ids: [ItemID]

  init() throws {
    fixture = try VaultFixture()
    ids = try fixture.makeVault()
  }

  private func open() throws -> VaultEngine { try fixture.openReadingSingleItems() }

  private func identity(_ service: ExactString) -> ItemIdentity {
    KeychainSamples.generic(service).identity
  }

  @Test func oneItemIsFoundWithoutTheOthers() throws {
    let engine = try open()
    let lookup = try #require(engine.lookup)
    let item = try #require(try lookup.item(with: identity("b")))
    #expect(item.id == ids[1])
    #expect(try lookup.item(ids[1]) == item)
    #expect(try engine.bytes(of: item.id) == Array("secret of b".utf8))
    #expect(try lookup.item(with: identity("x")) == nil)
    #expect(engine.lookup != nil, "nothing has needed all items")
    #expect(try engine.items().first { $0.id == ids[1] } == item)
    #expect(engine.lookup == nil)
  }

  @Test func changesAreSeenByOthersThatReadSingleItems() throws {
    let reader = try open()
    #expect(try reader.lookup?.item(with: identity("a"))?.size == 11)
    let writer = try open()
    try writer.set(ids[0], Array("new".utf8))
    try writer.remove([ids[2]])
    let added = try writer.add(KeychainSamples.generic("d"), "d").id
    #expect(try reader.lookup?.item(with: identity("a"))?.size == 3)
    #expect(try reader.bytes(of: ids[0]) == Array("new".utf8))
    #expect(try reader.lookup?.item(with: identity("c")) == nil)
    #expect(try reader.lookup?.item(with: identity("d"))?.id == added)
    #expect(reader.lookup != nil && writer.lookup != nil)
    #expect(try fixture.open().trust == .trusted)
  }

  @Test func identityIsThereOnce() throws {
    let engine = try open()
    #expect(failure { try engine.add(KeychainSamples.generic("b"), "again") }?.kind == "exists")
    #expect(try engine.update([ids[0]]) { item throws(StoreError) in item.label = "l" }.count == 1)
    #expect(try fixture.open().items().count == 3)
  }
}

// MARK: - Attacks

extension VaultLookupTests {
  /// An edited row of a leaf is found with any item of it.
  @Test(arguments: [
    "DELETE FROM item WHERE uuid = ID", "UPDATE item SET revision = 1 WHERE uuid = ID",
    "UPDATE item SET uuid = randomblob(16) WHERE uuid = ID",
    "UPDATE item SET tag = randomblob(16) WHERE uuid = ID",
    "INSERT INTO item SELECT randomblob(16), tag, revision + 1, sealed FROM item WHERE uuid = ID",
    "DELETE FROM digest", "UPDATE digest SET leaves = randomblob(length(leaves))",
  ])
  func editIsFound(_ statement: String) throws {
    try fixture.edit(statement.replacing("ID", with: fixture.literal(ids[2])))
    let engine = try open()
    #expect(try engine.lookup?.item(with: identity("a"))?.id == ids[0], "it can still be read")
    expectDistrust(engine)
    let writer = try open()
    #expect(failure { try writer.set(ids[0], [1]) }?.kind == "readOnly")
    #expect(failure { try writer.remove([ids[1]]) }?.kind == "readOnly")
    #expect(failure { try writer.add(KeychainSamples.generic("d"), "d") }?.kind == "readOnly")
    expectDistrust(try fixture.open())
    let accepting = try fixture.open()
    try accepting.acceptRollback()
    #expect(try accepting.set(ids[0], [1]).size == 1)
    #expect(try fixture.open().trust == .trusted)
  }

  /// Neither a look-up nor a change of one leaf makes up for an edit of another.
  @Test func editOfAnotherLeafStaysToBeFound() throws {
    let engine = try fixture.open()
    let added = try (0..<200).map { try engine.add(KeychainSamples.generic(ExactString("s\($0)")), "s").id }
    let layout = try #require(LeafLayout(count: 7))
    let leaves = try added.map { layout.leaf(of: try columns(of: $0, engine).tag) }
    try #require(Set(leaves).count > 2)
    let other = try #require(added.indices.first { leaves[$0] != leaves[0] })
    try fixture.edit("DELETE FROM item WHERE uuid = \(fixture.literal(added[other]))")
    let single = try open()
    #expect(try single.lookup?.item(with: identity("s0"))?.id == added[0])
    try single.set(added[0], Array("changed".utf8))
    let beside = try #require(added.indices.dropFirst().first { leaves[$0] == leaves[0] })
    try single.remove([added[beside]])
    #expect(single.lookup != nil)
    #expect(try single.lookup?.item(with: identity(ExactString("s\(other)"))) == nil)
    expectDistrust(single)
    expectDistrust(try fixture.open())
  }

  @Test func deletedRowIsNotTakenForGone() throws {
    let before = fixture.snapshot()
    try fixture.edit("DELETE FROM item WHERE uuid = \(fixture.literal(ids[1]))")
    let engine = try open()
    #expect(try engine.lookup?.item(with: identity("b")) == nil)
    expectDistrust(engine)
    try fixture.restore(before)
    try fixture.edit("DELETE FROM secret WHERE uuid = \(fixture.literal(ids[1]))")
    #expect(failure { _ = try open().bytes(of: ids[1]) }?.kind == "damaged")
  }

  /// The row and the secret of an earlier moment, which open.
  @Test func olderRowPutBackIsNotRead() throws {
    let old = "ATTACH '\(fixture.root)/old.db' AS o"
    try fixture.edit(
      old, "CREATE TABLE o.item AS SELECT * FROM main.item",
      "CREATE TABLE o.secret AS SELECT * FROM main.secret")
    try fixture.open().set(ids[0], Array("newer".utf8))
    try fixture.edit(
      old, "DELETE FROM main.secret", "INSERT INTO main.secret SELECT * FROM o.secret",
      "INSERT OR REPLACE INTO main.item SELECT * FROM o.item WHERE uuid = \(fixture.literal(ids[0]))")
    let engine = try open()
    _ = try? engine.bytes(of: ids[0])
    expectDistrust(engine)
  }

  @Test func secretIsReadOfProvenRowsOnly() throws {
    let engine = try open()
    #expect(try engine.bytes(of: ids[0]) == Array("secret of a".utf8))
    try fixture.edit("DELETE FROM item WHERE uuid = \(fixture.literal(ids[2]))")
    _ = try engine.bytes(of: ids[0])
    expectDistrust(engine)
  }

  /// SQLite's index is a table of its own: one that was edited could hide a row that a walk over the table finds.
  @Test func indexThatHidesAnItemIsFound() throws {
    try editIndex(of: ids[0])
    let engine = try open()
    #expect(try engine.lookup?.item(with: identity("a"))?.id == ids[0])
    expectDistrust(engine)
    expectDistrust(try fixture.open())
    let accepting = try fixture.open()
    try accepting.acceptRollback()
    #expect(try open().lookup?.item(with: identity("a"))?.id == ids[0])
  }

  /// The index is a tree: a forged key above its leaves lets a walk see all rows, and leads a look for some of them astray.
  @Test func rowsThatAreHiddenWhileALeafIsDividedAreNotLost() throws {
    // The next item divides leaf 1, of the tags that begin with 100.
    let added = try vault(of: 288)
    let hidden = try added.filter { try columns(of: $0, fixture.open()).tag.high >> 60 == 9 }
    try #require(!hidden.isEmpty)
    try forgeRootOfIndex()
    for number in 0..<20 { _ = try? open().add(KeychainSamples.generic(ExactString("more \(number)")), "s") }
    let items = try fixture.open().items()
    for id in hidden {
      let identity = try #require(items.first { $0.id == id }).identity
      #expect(try open().lookup?.item(with: identity)?.id == id)
      #expect(try open().lookup?.item(id)?.id == id)
    }
  }

  /// Closed again, so that its log is empty.
  private func vault(of count: Int) throws -> [ItemID] {
    let engine = try fixture.open()
    try engine.remove(ids)
    return try (0..<count).map { try engine.add(KeychainSamples.generic(ExactString("n\($0)")), "s").id }
  }

  /// Gives the first key above 0xA0… in the root of the index the value 0x8FFF….
  private func forgeRootOfIndex() throws {
    let root = try #require(
      try fixture.number("SELECT rootpage FROM sqlite_schema WHERE name = 'sqlite_autoindex_item_2'"))
    var bytes = contents(of: fixture.database)
    let page = (root - 1) * 4096
    try #require(bytes[page] == 2, "a page above the leaves")
    let count = Int(bytes[page + 3]) << 8 | Int(bytes[page + 4])
    // A pointer of two bytes to each cell: a page's number (4), the length, the record's header, the tag.
    let tags = (0..<count).map { index -> Int in
      let pointer = page + 12 + 2 * index
      let cell = page + (Int(bytes[pointer]) << 8 | Int(bytes[pointer + 1]))
      return cell + 5 + Int(bytes[cell + 5])
    }
    let tag = try #require(tags.first { bytes[$0] >= 0xA0 })
    bytes.replaceSubrange(tag..<tag + 16, with: [0x8F] + [UInt8](repeating: 0xFF, count: 15))
    try fixture.overwrite(with: bytes)
  }

  @Test(arguments: ["index", "digest"]) func vaultWithoutAReadableProofIsRead(_ table: String) throws {
    let name = table == "index" ? "sqlite_autoindex_item_2" : table
    let root = try #require(try fixture.number("SELECT rootpage FROM sqlite_schema WHERE name = '\(name)'"))
    var bytes = contents(of: fixture.database)
    bytes.replaceSubrange((root - 1) * 4096..<root * 4096, with: [UInt8](repeating: 0, count: 4096))
    try fixture.overwrite(with: bytes)
    let engine = try open()
    #expect(try engine.lookup?.item(with: identity("b"))?.id == ids[1])
    #expect(try engine.bytes(of: ids[1]) == Array("secret of b".utf8))
    expectDistrust(engine)
    let accepting = try fixture.open()
    #expect(try accepting.items().count == 3)
    try accepting.acceptRollback()
    try accepting.set(ids[0], [1])
    #expect(try fixture.open().trust == .trusted)
    #expect(try open().lookup?.item(with: identity("c"))?.id == ids[2])
    let check = "SELECT count(*) FROM pragma_integrity_check WHERE integrity_check = 'ok'"
    #expect(try fixture.number(check) == 1)
  }

  /// A deleted item was put back by another program while one that has read it before goes on.
  @Test func moreRowsThanTheManifestCountsAreNoTrap() throws {
    let copy = "ATTACH '\(fixture.root)/old.db' AS o"
    try fixture.edit(copy, "CREATE TABLE o.item AS SELECT * FROM main.item")
    let engine = try open()
    _ = try engine.lookup?.item(ids[0])
    try open().remove(ids)
    try fixture.edit(
      copy, "INSERT INTO main.item SELECT * FROM o.item WHERE uuid = \(fixture.literal(ids[0]))")
    #expect(failure { try engine.remove([ids[0]]) }?.kind == "readOnly")
  }

  @Test func newKeysAreNotMadeOfAnEditedVault() throws {
    let engine = try open()
    try fixture.edit("DELETE FROM item WHERE uuid = \(fixture.literal(ids[2]))")
    let none = try SecretBytes()
    #expect(
      failure { try engine.change(to: .keyFile, none, present: none, cost: .least) }?.kind == "readOnly")
    expectDistrust(try fixture.open())
  }

  private func expectDistrust(_ engine: VaultEngine, _ location: SourceLocation = #_sourceLocation) {
    guard case .distrusted = engine.trust else {
      Issue.record("\(engine.trust)", sourceLocation: location)
      return
    }
    #expect(engine.lookup == nil, sourceLocation: location)
  }

  /// Changes the last byte of an item's tag in the index: there the tag is before the key, in the table behind it.
  private func editIndex(of id: ItemID) throws {
    let key = try #require(ItemKey(id)).bytes
    let tag = try columns(of: id, fixture.open()).tag.bytes
    var bytes = contents(of: fixture.database)
    let start = try #require(
      bytes.indices.dropLast(48).first { start in
        guard bytes[start..<start + 16].elementsEqual(tag) else { return false }
        return (16...20).contains { bytes[start + $0..<start + $0 + 16].elementsEqual(key) }
      })
    bytes[start + 15] ^= 1
    try fixture.overwrite(with: bytes)
  }

  private func columns(of id: ItemID, _ engine: VaultEngine) throws -> ItemRow {
    let key = try #require(ItemKey(id))
    let row = try engine.withSession { session throws(StoreError) in
      try session.connection.run { try session.items($0).fetchColumns(key) }
    }
    return try #require(row)
  }
}

// MARK: - Accepting

extension VaultLookupTests {
  /// Rows of another program are taken away, or kept as damaged items.
  @Test(arguments: [
    "INSERT INTO item VALUES (randomblob(16), randomblob(16), -1, x'00')",
    "INSERT INTO item VALUES (randomblob(16), randomblob(16), 9223372036854775807, x'00')",
    "INSERT INTO item VALUES (randomblob(15), randomblob(16), 1, x'00')",
    "INSERT INTO item SELECT randomblob(16), tag, revision, sealed FROM item",
    "INSERT INTO item SELECT randomblob(16), tag, 9223372036854775807, sealed FROM item",
    "DELETE FROM digest", "INSERT INTO digest VALUES (7, x'00')",
    "UPDATE item SET tag = randomblob(16) WHERE uuid = (SELECT max(uuid) FROM item)",
  ])
  func acceptedVaultIsWhole(_ statement: String) throws {
    try fixture.edit(statement)
    let accepting = try fixture.open()
    try accepting.acceptRollback()
    let readable = Set(try fixture.open().items().map(\.id))
    #expect(readable.isSubset(of: Set(ids)) && readable.count >= 2)
    for id in readable { try open().set(id, [7]) }
    let engine = try fixture.open()
    #expect(engine.trust == .trusted)
    try engine.withSession { session throws(StoreError) in
      try session.connection.read { database in
        let manifest = try Manifest.fetch(database, session.keys)
        try DigestTable(database: database, keys: session.keys).requireWhole(manifest)
        #expect(manifest.generation < 1000)
      }
    }
  }
}

// MARK: - Rules

extension VaultLookupTests {
  /// Where rules were stored, their loss is no permission.
  @Test(arguments: ["UPDATE item SET sealed = zeroblob(length(sealed))", "DELETE FROM item"], [true, false])
  func rulesThatAreGoneAreNotNone(_ edit: String, _ readsAll: Bool) throws {
    try KeychainStore(engine: fixture.open()).setRules("deny everyone", of: .keychain, nil)
    let rules = try #require(try fixture.open().items().first { $0.identity == .rules })
    try fixture.edit("\(edit) WHERE uuid = \(fixture.literal(rules.id))")
    let store = KeychainStore(engine: readsAll ? try fixture.open() : try open())
    let item = try #require(try store.item(with: identity("a")))
    #expect(throws: StoreError.self) { try store.checkAccess(to: item) }
    #expect(throws: StoreError.self) { _ = try store.folderRules() }
    let accepting = try fixture.open()
    expectDistrust(accepting)
    try accepting.acceptRollback()
    let accepted = KeychainStore(engine: try open())
    try accepted.checkAccess(to: item)
    try accepted.setRules("deny everyone", of: .keychain, nil)
    #expect(throws: StoreError.self) { try accepted.checkAccess(to: item) }
  }

  @Test func rulesThatWereRemovedAreNone() throws {
    let store = KeychainStore(engine: try open())
    try store.setRules("deny everyone", of: .keychain, nil)
    let rules = try #require(try fixture.open().items().first { $0.identity == .rules })
    try store.engine.remove([rules.id])
    try KeychainStore(engine: open()).checkAccess(to: #require(try store.item(with: identity("a"))))
    #expect(try fixture.open().trust == .trusted)
  }
}

// MARK: - Growth

extension VaultLookupTests {
  @Test func treeFollowsEveryChange() throws {
    let engine = try open()
    var (present, next) = (ids, 0)
    for count in [1, 40, 200, 3, 600, 1, 30] {
      let changes = (0..<count).map { ItemChange.add(KeychainSamples.generic(ExactString("n\(next + $0)"))) }
      next += count
      let secret = [UInt8]("s".utf8)
      let added = try engine.apply(changes) { _ throws(StoreError) in try Self.secret(secret) }
      present += added.map(\.id)
      try requireWhole(engine)
      present.shuffle()
      try engine.remove(Array(present.prefix(count / 2)))
      present.removeFirst(count / 2)
      try requireWhole(engine)
      for id in present.prefix(3) { try engine.set(id, [1, 2]) }
    }
    try engine.remove(Array(present.dropFirst(5)))
    try requireWhole(engine)
    for id in present.prefix(4) { try engine.remove([id]) }
    try requireWhole(engine)
    #expect(engine.lookup != nil)
    #expect(try fixture.open().items().map(\.id) == [present[4]])
    #expect(try fixture.open().trust == .trusted)
  }

  /// As `VAULT.md` describes it; with so many items it has two pages.
  @Test(arguments: [0, 3, 200, 8300]) func treeIsThatOfTheDocument(_ count: Int) throws {
    let engine = try open()
    let changes = (0..<count).map { ItemChange.add(KeychainSamples.generic(ExactString("n\($0)"))) }
    let added = try engine.apply(changes) { _ throws(StoreError) in try Self.secret([1]) }
    try engine.remove(ids)
    let reader = try IndependentReader(
      database: fixture.database, key: contents(of: fixture.key), deviceKey: [])
    #expect(try reader.manifest()[4] == [reader.tree()])
    try requireWhole(engine)
    #expect(try engine.lookup?.item(with: identity("n7"))?.id == (count > 7 ? added[7].id : nil))
    try engine.remove(added.dropFirst(100).map(\.id))
    #expect(try reader.manifest()[4] == [reader.tree()])
    try requireWhole(engine)
  }

  private func requireWhole(_ engine: VaultEngine) throws {
    let manifest = try engine.withSession { session throws(StoreError) in
      try session.connection.read { database in
        let manifest = try Manifest.fetch(database, session.keys)
        try DigestTable(database: database, keys: session.keys).requireWhole(manifest)
        return manifest
      }
    }
    #expect(manifest.leaves.fitting(items: manifest.count) == manifest.leaves)
  }

  private static func secret(_ bytes: [UInt8]) throws(StoreError) -> SecretBytes {
    do { return try SecretBytes(copying: bytes.span) } catch { throw .outOfMemory }
  }

  @Test func failedChangeLeavesTheTree() throws {
    let engine = try open()
    let changes = ["d", "a"].map { ItemChange.add(KeychainSamples.generic($0)) }
    let refusal = failure {
      _ = try engine.apply(changes) { _ throws(StoreError) in try Self.secret([1]) }
    }
    #expect(refusal?.kind == "exists")
    try engine.set(ids[0], [1])
    try requireWhole(engine)
  }
}

// MARK: - The store

extension VaultLookupTests {
  @Test func storeChangesSingleItemsWithoutReadingTheOthers() throws {
    let store = KeychainStore(engine: try open())
    let item = try #require(try store.item(with: identity("a")))
    try store.rewrite(item.id, readingSecret: false) { (_, secret) throws(StoreError) in
      try? secret.resize(to: 3)
    }
    try store.update([item.id]) { (item) throws(StoreError) in item.label = "label" }
    try store.remove([ids[1]])
    try store.add(KeychainSamples.generic("d"), secret: KeychainSamples.secret("d"))
    #expect(try store.item(with: identity("b")) == nil)
    #expect(!store.isLoaded)
    #expect(try Set(store.read { index in index.all.map(\.identity.folder) }) == ["a", "c", "d"])
    #expect(try store.item(item.id)?.label == "label")
  }

  @Test func rulesHoldForAnItemThatIsLookedUpAndAreNoItem() throws {
    try KeychainStore(engine: fixture.open()).setRules("deny everyone", of: .keychain, nil)
    let store = KeychainStore(engine: try open())
    let item = try #require(try store.item(with: identity("a")))
    #expect(throws: StoreError.self) { try store.checkAccess(to: item) }
    #expect(try store.item(with: .rules) == nil)
    let rules = try #require(try store.engine.lookup?.item(with: .rules))
    #expect(try store.item(rules.id) == nil)
    #expect(!store.isLoaded)
  }
}
