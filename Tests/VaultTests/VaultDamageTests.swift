import GRDB
import Glibc
import Model
import Store
import StoreConformance
import Testing

@testable import Vault
@testable import VaultRecords

@Suite struct VaultDamageTests {
  /// The outcomes for a damaged file: one of these errors, or unchanged items. It seems locked where a bit of the slot's kind has flipped,
  /// from the key file's to the passphrase's.
  private static let outcomes: Set<String> = ["damaged", "unsupported", "accessDenied", "system", "locked"]

  @Test func aVaultCutOffAnywhereIsAnErrorAndStaysAsItIs() throws {
    let fixture = try VaultFixture()
    try fixture.makeVault()
    let whole = fixture.snapshot()
    let bytes = try #require(whole["vault.db"])
    let lengths = [0, 1, 15, 16, 17, 50, 99, 100, 101] + Array(stride(from: 512, to: bytes.count, by: 512))
    for length in lengths + [bytes.count - 1] {
      var cut = whole
      cut["vault.db"] = Array(bytes.prefix(length))
      try fixture.restore(cut)
      let error = failure { _ = try fixture.open() }
      #expect(error.map { Self.outcomes.contains($0.kind) } == true, "\(length): \(error as Any)")
      #expect(fixture.snapshot()["vault.db"] == cut["vault.db"], "\(length)")
      #expect(fixture.snapshot()["vault.key"] == cut["vault.key"])
    }
  }

  @Test func aFlippedBitNeverGivesAWrongSecret() throws {
    let fixture = try VaultFixture()
    try fixture.makeVault()
    let whole = fixture.snapshot()
    let bytes = try #require(whole["vault.db"])
    var generator = SystemRandomNumberGenerator()
    let sample = (0..<500).map { _ in Int.random(in: 100..<bytes.count, using: &generator) }
    for position in Array(0..<100) + sample {
      var flipped = whole
      flipped["vault.db"]?[position] ^= 1 << UInt8.random(in: 0..<8)
      try fixture.restore(flipped)
      try expectNothingWrong(fixture, "byte \(position)")
    }
  }

  /// A key that is out of order hides the rows beside it from a look-up, not from a walk over the table.
  @Test(arguments: [0, 0xFF] as [UInt8]) func rowsThatCanNotBeLookedUpAreDamaged(_ first: UInt8) throws {
    let fixture = try VaultFixture()
    let keys = try fixture.makeVault().compactMap { ItemKey($0)?.bytes }.sorted {
      $0.lexicographicallyPrecedes($1)
    }
    let whole = fixture.snapshot()
    let bytes = try #require(whole["vault.db"])
    var places = 0
    for position in bytes.indices.dropLast(16) where bytes[position..<position + 16].elementsEqual(keys[1]) {
      var damaged = whole
      damaged["vault.db"]?[position] = first
      try fixture.restore(damaged)
      try expectNothingWrong(fixture, "byte \(position)")
      places += 1
    }
    #expect(places > 1)
  }

  @Test(arguments: ["slot", "class_key", "manifest", "item", "secret"])
  func aFlippedBitInASealIsFound(_ table: String) throws {
    let fixture = try VaultFixture()
    try fixture.makeVault()
    let whole = fixture.snapshot()
    let other = "CASE substr(sealed, 21, 1) WHEN x'00' THEN x'01' ELSE x'00' END"
    try fixture.edit(
      "UPDATE \(table) SET sealed = CAST(substr(sealed, 1, 20) || \(other) || substr(sealed, 22) AS BLOB)")
    try expectNothingWrong(fixture, table)
    let found = failure {
      let engine = try fixture.open()
      guard engine.problems().isEmpty else { throw StoreError.damaged(what: "") }
      for item in try engine.items() { _ = try engine.secret(of: item.id) }
    }
    #expect(found?.kind == "damaged", "\(table)")
    #expect(whole["vault.db"]?.count == contents(of: fixture.database).count)
  }

  @Test func aDamagedItemLeavesTheOthersAndCanBeDeleted() throws {
    let fixture = try VaultFixture()
    let ids = try fixture.makeVault()
    let row = fixture.literal(ids[1])
    try fixture.edit("UPDATE item SET sealed = zeroblob(length(sealed)) WHERE uuid = \(row)")
    let engine = try fixture.open()
    #expect(try Set(engine.items().map(\.id)) == [ids[0], ids[2]])
    #expect(try engine.bytes(of: ids[0]) == Array("secret of a".utf8))
    #expect(failure { _ = try engine.secret(of: ids[1]) }?.kind == "damaged")
    #expect(engine.problems().map(\.subject) == ["item \(ids[1].rawValue)"])
    try engine.set(ids[2], [1])
    try engine.remove([ids[1]])
    #expect(try fixture.open().problems().isEmpty)
  }

  @Test func aNewerVersionIsSaidToBeNewer() throws {
    let fixture = try VaultFixture()
    try fixture.makeVault()
    let whole = fixture.snapshot()
    for edit in ["PRAGMA user_version = 3", "UPDATE vault SET critical = 1 << 40"] {
      try fixture.restore(whole)
      try fixture.edit(edit)
      let before = fixture.snapshot()
      let error = failure { _ = try fixture.open() }
      #expect(error?.kind == "unsupported" && "\(error as Any)".contains("newer Keyhole"), "\(edit)")
      #expect(fixture.snapshot() == before)
    }
  }

  @Test func whatIsNoVaultIsLeftAlone() throws {
    let fixture = try VaultFixture()
    try fixture.makeVault()
    let whole = fixture.snapshot()
    for content in [Array("hello".utf8), [UInt8](repeating: 0, count: 8192), Array("SQLite format 3\0".utf8)]
    {
      var other = whole
      other["vault.db"] = content
      try fixture.restore(other)
      #expect(failure { _ = try fixture.open() } != nil)
      #expect(fixture.snapshot() == other)
    }
    unsafe unlink(fixture.database)
    try fixture.edit("CREATE TABLE t (x)")
    unsafe chmod(fixture.database, 0o600)
    #expect(failure { _ = try fixture.open() }?.kind == "unsupported")
  }

  @Test(arguments: [
    "CREATE TABLE more (x)", "CREATE VIEW v AS SELECT 1", "DROP TABLE secret",
    "CREATE TRIGGER t AFTER INSERT ON item BEGIN DELETE FROM secret; END",
    "DELETE FROM vault", "DELETE FROM slot", "UPDATE vault SET store = zeroblob(16)",
    "UPDATE slot SET commitment = zeroblob(32)", "UPDATE slot SET parameters = x''",
  ])
  func otherTablesOrSlotsAreFound(_ edit: String) throws {
    let fixture = try VaultFixture()
    try fixture.makeVault()
    try fixture.edit(edit)
    let error = failure { _ = try fixture.open() }
    #expect(error?.kind == "damaged" || error?.kind == "accessDenied", "\(error as Any)")
  }

  /// Opens and reads everything: what comes must be what was stored.
  private func expectNothingWrong(_ fixture: VaultFixture, _ label: String) throws {
    do {
      let engine = try fixture.open()
      for item in try engine.items() {
        guard case .generic(let service, "me") = item.identity else {
          Issue.record("a wrong item: \(label)")
          continue
        }
        let error = failure {
          let bytes = try engine.bytes(of: item.id)
          #expect(bytes == Array("secret of \(service)".utf8), "\(label)")
        }
        #expect(error == nil || error?.kind == "damaged", "\(label): \(error as Any)")
      }
    } catch let error as StoreError {
      #expect(Self.outcomes.contains(error.kind), "\(label): \(error)")
    }
  }
}
