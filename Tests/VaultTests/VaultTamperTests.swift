import Glibc
import Model
import Store
import StoreConformance
import Testing

@testable import Vault

/// The file is edited with SQL, or older parts of it are put back.
@Suite struct VaultTamperTests {
  @Test func aRowCopiedToAnotherItemOpensNowhere() throws {
    let (fixture, ids) = try vault()
    let (a, b) = (fixture.literal(ids[0]), fixture.literal(ids[1]))
    try fixture.edit(
      "UPDATE item SET sealed = (SELECT sealed FROM item WHERE uuid = \(a)) WHERE uuid = \(b)")
    let engine = try fixture.open()
    #expect(try Set(engine.items().map(\.id)) == [ids[0], ids[2]])
    #expect(failure { _ = try engine.secret(of: ids[1]) }?.kind == "damaged")
    #expect(try engine.bytes(of: ids[2]) == Array("secret of c".utf8))
  }

  @Test func swappedSecretsAreFound() throws {
    let (fixture, ids) = try vault()
    let (a, b) = (fixture.literal(ids[0]), fixture.literal(ids[1]))
    let moves = [(a, "x'00'"), (b, a), ("x'00'", b)].map {
      "UPDATE secret SET uuid = \($1) WHERE uuid = \($0)"
    }
    try fixture.edit(moves[0], moves[1], moves[2])
    let engine = try fixture.open()
    for id in ids[0...1] { #expect(failure { _ = try engine.secret(of: id) }?.kind == "damaged") }
    #expect(try engine.bytes(of: ids[2]) == Array("secret of c".utf8))
  }

  @Test func swappedKeysOfValuesAreFound() throws {
    let (fixture, ids) = try vault()
    let a = fixture.literal(ids[0])
    try fixture.edit("UPDATE secret SET wrapped = (SELECT wrapped FROM secret WHERE uuid = \(a))")
    let engine = try fixture.open()
    #expect(try engine.bytes(of: ids[0]) == Array("secret of a".utf8))
    #expect(failure { _ = try engine.secret(of: ids[1]) }?.kind == "damaged")
  }

  @Test(arguments: ["item", "secret"]) func aDeletedRowIsFound(_ table: String) throws {
    let (fixture, ids) = try vault()
    try fixture.edit("DELETE FROM \(table) WHERE uuid = \(fixture.literal(ids[0]))")
    let engine = try fixture.open()
    #expect(try engine.bytes(of: ids[1]) == Array("secret of b".utf8))
    #expect(failure { _ = try engine.secret(of: ids[0]) } != nil)
    if table == "item" { try expectReadOnly(engine, ids[1]) }
  }

  @Test func aDoubledRowIsFound() throws {
    let (fixture, ids) = try vault()
    try fixture.edit(
      "INSERT INTO item SELECT randomblob(16), randomblob(16), revision, sealed FROM item "
        + "WHERE uuid = \(fixture.literal(ids[0]))")
    let engine = try fixture.open()
    #expect(try engine.items().count == 3)
    try expectReadOnly(engine, ids[1])
    try engine.acceptRollback()
    #expect(try engine.set(ids[0], [1]).size == 1)
  }

  @Test func anOlderRowPutBackIsFound() throws {
    let (fixture, ids) = try vault()
    try fixture.edit("CREATE TABLE old AS SELECT * FROM item", "CREATE TABLE olds AS SELECT * FROM secret")
    try fixture.edit(
      "ATTACH '\(fixture.root)/old.db' AS o", "CREATE TABLE o.item AS SELECT * FROM old",
      "CREATE TABLE o.secret AS SELECT * FROM olds", "DROP TABLE old", "DROP TABLE olds")
    try fixture.open().set(ids[0], Array("newer".utf8))
    let row = fixture.literal(ids[0])
    let put = ["secret", "item"].map {
      "INSERT OR REPLACE INTO main.\($0) SELECT * FROM o.\($0) WHERE uuid = \(row)"
    }
    try fixture.edit(
      "ATTACH '\(fixture.root)/old.db' AS o", "DELETE FROM main.secret WHERE uuid = \(row)", put[0])
    #expect(failure { _ = try fixture.open().secret(of: ids[0]) }?.kind == "damaged")
    try fixture.edit("ATTACH '\(fixture.root)/old.db' AS o", put[1])
    let engine = try fixture.open()
    try expectReadOnly(engine, ids[1])
    #expect(try engine.bytes(of: ids[0]) == Array("secret of a".utf8))
  }

  @Test(arguments: ["class_key = 2", "class_key = 99", "kind = 2", "parameters = x'00'"])
  func aWeakenedColumnIsFound(_ change: String) throws {
    let (fixture, ids) = try vault()
    let other = try fixture.open().add(
      with(KeychainSamples.generic("d")) { $0.accessibility = .afterFirstUnlock }, "d")
    try fixture.edit("UPDATE secret SET \(change) WHERE uuid = \(fixture.literal(ids[0]))")
    let engine = try fixture.open()
    #expect(failure { _ = try engine.secret(of: ids[0]) }?.kind == "damaged")
    #expect(try engine.bytes(of: other.id) == [0x64])
  }

  @Test(arguments: [
    "tag = randomblob(16)", "revision = revision + 1", "revision = -1", "uuid = randomblob(16)",
  ])
  func aChangedColumnOfAnItemIsFound(_ change: String) throws {
    let (fixture, ids) = try vault()
    try fixture.edit("UPDATE item SET \(change) WHERE uuid = \(fixture.literal(ids[0]))")
    let engine = try fixture.open()
    #expect(try engine.items().count == 2)
    #expect(!engine.problems().isEmpty)
    #expect(try engine.bytes(of: ids[1]) == Array("secret of b".utf8))
  }

  @Test func weakenedFlagsDoNotOpenTheSecret() throws {
    // The same item and revisions, once with and once without its flag: the metadata of one, the secret
    // of the other.
    let (fixture, ids) = try vault()
    let (before, anchor) = (fixture.snapshot(), fixture.anchor)
    let anchored = contents(of: anchor)
    _ = try fixture.open().update([ids[0]]) { item throws(StoreError) in item.label = "x" }
    try fixture.edit("ATTACH '\(fixture.root)/weak.db' AS o", "CREATE TABLE o.item AS SELECT * FROM item")
    try fixture.restore(before)
    try write(anchored, to: anchor)
    _ = try fixture.open().update([ids[0]]) { item throws(StoreError) in item.access = [.userPresence] }
    let row = fixture.literal(ids[0])
    try fixture.edit(
      "ATTACH '\(fixture.root)/weak.db' AS o",
      "INSERT OR REPLACE INTO main.item SELECT * FROM o.item WHERE uuid = \(row)")
    #expect(failure { _ = try fixture.open().secret(of: ids[0]) }?.kind == "damaged")
  }

  @Test func aVaultPutBackWholeIsReadOnlyUntilAccepted() throws {
    let (fixture, ids) = try vault()
    let old = fixture.snapshot()
    try fixture.open().set(ids[0], Array("newer".utf8))
    try fixture.restore(old)
    let engine = try fixture.open()
    #expect(try engine.bytes(of: ids[0]) == Array("secret of a".utf8))
    try expectReadOnly(engine, ids[0])
    try engine.acceptRollback()
    #expect(engine.problems().isEmpty)
    try engine.set(ids[0], [1])
    #expect(try fixture.open().problems().isEmpty)
  }

  @Test func anAnchorThatLagsIsFine() throws {
    let (fixture, ids) = try vault()
    let anchor = fixture.anchor
    let old = contents(of: anchor)
    try fixture.open().set(ids[0], [1])
    #expect(contents(of: anchor) != old)
    try write(old, to: anchor)
    #expect(try fixture.open().problems().isEmpty)
    var forged = contents(of: anchor)
    forged[25] ^= 1
    try write(forged, to: anchor)
    try expectReadOnly(fixture.open(), ids[0])
  }

  @Test func aVaultPutBackUnderARunningProcessIsFound() throws {
    let (fixture, ids) = try vault()
    let engine = try fixture.open()
    try fixture.edit(
      "ATTACH '\(fixture.root)/old.db' AS o", "CREATE TABLE o.m AS SELECT * FROM manifest",
      "CREATE TABLE o.i AS SELECT * FROM item")
    try engine.set(ids[0], [1])
    try fixture.edit(
      "ATTACH '\(fixture.root)/old.db' AS o",
      "INSERT OR REPLACE INTO manifest SELECT * FROM o.m", "INSERT OR REPLACE INTO item SELECT * FROM o.i")
    #expect(failure { try engine.set(ids[1], [2]) }?.kind == "readOnly")
    #expect(try engine.changes().items()?.count == 3)
    try expectReadOnly(engine, ids[1])
  }

  private func vault() throws -> (VaultFixture, [ItemID]) {
    let fixture = try VaultFixture()
    return (fixture, try fixture.makeVault())
  }

  private func with(_ item: Item, _ change: (inout Item) -> Void) -> Item {
    var item = item
    change(&item)
    return item
  }

  private func expectReadOnly(_ engine: VaultEngine, _ id: ItemID) throws {
    #expect(failure { try engine.set(id, [1]) }?.kind == "readOnly")
    #expect(failure { try engine.remove([id]) }?.kind == "readOnly")
    #expect(failure { try engine.add(KeychainSamples.generic("new"), "") }?.kind == "readOnly")
    #expect(engine.problems().contains { $0.reason.contains("read") })
  }
}
