import Model
import Store
import StoreConformance
import Testing

@testable import Vault
@testable import VaultRecords

/// The second secret of an item in the file: sealed like the first one, and to one place only.
@Suite struct VaultOtpauthTests {
  private static let uri = "otpauth://totp/a:me?secret=JBSWY3DPEHPK3PXP"
  private static let other = "otpauth://totp/a:me?secret=JBSWY3DPEHPK3PXQ"

  private func vault() throws -> (VaultFixture, [ItemID]) {
    let fixture = try VaultFixture()
    let ids = try fixture.makeVault()
    let engine = try fixture.open()
    try engine.setOtpauth(ids[0], Self.uri)
    try engine.setOtpauth(ids[1], Self.other)
    return (fixture, ids)
  }

  @Test func swappedAndDeletedRowsAreFound() throws {
    for change in ["uuid", "part", "none"] {
      let (fixture, ids) = try vault()
      let (a, b) = (fixture.literal(ids[0]), fixture.literal(ids[1]))
      switch change {
      case "uuid":
        try fixture.edit(
          "UPDATE secret SET (wrapped, sealed) = (SELECT wrapped, sealed FROM secret WHERE uuid = \(b) AND part = 1) "
            + "WHERE uuid = \(a) AND part = 1")
      case "part":
        try fixture.edit(
          "UPDATE secret SET (wrapped, sealed) = (SELECT wrapped, sealed FROM secret WHERE uuid = \(a) AND part = 0) "
            + "WHERE uuid = \(a) AND part = 1")
      default: try fixture.edit("DELETE FROM secret WHERE uuid = \(a) AND part = 1")
      }
      let engine = try fixture.open()
      #expect(failure { _ = try engine.otpauth(of: ids[0]) }?.kind == "damaged", "\(change)")
      #expect(try engine.bytes(of: ids[0]) == Array("secret of a".utf8))
      #expect(try engine.otpauthBytes(of: ids[1]) == Array(Self.other.utf8))
      let check = try engine.checkSecrets()
      #expect(check.damaged.map(\.item.id) == [ids[0]] && check.opened == 4, "\(change)")
      // A new one mends the item.
      try engine.setOtpauth(ids[0], Self.uri)
      #expect(try engine.checkSecrets().damaged.isEmpty)
    }
  }

  @Test func anOlderRowPutBackOpensNothing() throws {
    let (fixture, ids) = try vault()
    let row = "uuid = \(fixture.literal(ids[0])) AND part = 1"
    try fixture.edit(
      "ATTACH '\(fixture.root)/old.db' AS o",
      "CREATE TABLE o.secret AS SELECT * FROM main.secret WHERE \(row)")
    try fixture.open().setOtpauth(ids[0], Self.other)
    try fixture.edit(
      "ATTACH '\(fixture.root)/old.db' AS o", "DELETE FROM main.secret WHERE \(row)",
      "INSERT INTO main.secret SELECT * FROM o.secret")
    #expect(failure { _ = try fixture.open().otpauth(of: ids[0]) }?.kind == "damaged")
  }

  @Test func removingLeavesNoRow() throws {
    let (fixture, ids) = try vault()
    let engine = try fixture.open()
    _ = try engine.rewriteOtpauth(of: ids[0], readingSecret: false) { further, _ in further = nil }
    try engine.remove([ids[1]])
    #expect(try fixture.number("SELECT count(*) FROM secret WHERE part = 1") == 0)
    #expect(try engine.checkSecrets().withoutItem == 0)
  }

  /// New keys seal both secrets of an item again.
  @Test func newKeysSealItAgain() throws {
    let (fixture, ids) = try vault()
    let engine = try fixture.open()
    let phrase = try KeychainSamples.secret("horse")
    try engine.change(to: .passphrase, phrase, present: KeychainSamples.secret(""), cost: .least)
    #expect(try engine.otpauthBytes(of: ids[0]) == Array(Self.uri.utf8))
    let reopened = try fixture.open()
    #expect(failure { _ = try reopened.otpauth(of: ids[0]) } == .locked)
    try reopened.unlock(phrase)
    #expect(try reopened.otpauthBytes(of: ids[0]) == Array(Self.uri.utf8))
    try reopened.lock()
    #expect(failure { _ = try reopened.otpauth(of: ids[0]) } == .locked)
    #expect(failure { try reopened.setOtpauth(ids[0], Self.other) } == .locked)
  }
}
