import InMemory
import Model
import SecretMemory
import Store
import StoreConformance
import Testing

@testable import KeychainSelection

/// A migration from and to a keychain that holds one secret of an item.
@Suite(.timeLimit(.minutes(1))) struct OtpauthMigrationTests {
  private static let uri = "otpauth://totp/a:me?secret=JBSWY3DPEHPK3PXP"
  private let vault = MemoryKeychain()
  private let service = MemoryKeychain(holdsOtpauth: false)

  @discardableResult
  private func migrate(
    _ old: MemoryKeychain, _ new: MemoryKeychain,
    _ permit: @escaping (Item) throws(StoreError) -> Permit? = { _ in nil }
  ) throws -> KeychainMigration.Summary {
    let migration = KeychainMigration(from: old, to: new, path: Self.path, permit: permit)
    return try migration.run(migration.plan()) { _ in }
  }

  private static func path(_ identity: ItemIdentity) -> String {
    guard case .generic(let service, let account) = identity else { return "other" }
    return "\(service)/\(account)"
  }

  private func item(_ account: ExactString, in keychain: MemoryKeychain) throws -> Item {
    try #require(try keychain.items().first { $0.identity == .generic(service: "a", account: account) })
  }

  @Test func becomesACompanionAndTheSecondSecretAgain() throws {
    var original = KeychainSamples.generic("a")
    original.accessibility = .afterFirstUnlock
    let id = try vault.add(original, "secret").id
    let before = try vault.setOtpauth(id, Self.uri)
    try vault.add(KeychainSamples.generic("b"), "b")
    #expect(try migrate(vault, service).companions == ["a/me/otp"])
    #expect(try vault.items().isEmpty && service.items().count == 3)
    let companion = try item("me/otp", in: service)
    #expect(try service.bytes(of: companion.id) == Array(Self.uri.utf8))
    #expect(companion.accessibility == .afterFirstUnlock)
    #expect(companion.attributes["belongsTo"] == Array("a/me".utf8))
    #expect(try migrate(service, vault).joined == ["a/me"])
    #expect(try service.items().isEmpty && vault.items().count == 2)
    let back = try item("me", in: vault)
    #expect(back.otpauth == before.otpauth && back.attributes == before.attributes)
    #expect(try vault.otpauthBytes(of: back.id) == Array(Self.uri.utf8))
    #expect(try vault.bytes(of: back.id) == Array("secret".utf8))
  }

  @Test func betweenTwoVaultsItStaysWhatItIs() throws {
    let other = MemoryKeychain()
    try vault.setOtpauth(vault.add(KeychainSamples.generic("a"), "secret").id, Self.uri)
    let summary = try migrate(vault, other)
    #expect(summary.companions.isEmpty && summary.joined.isEmpty)
    #expect(try other.otpauthBytes(of: item("me", in: other).id) == Array(Self.uri.utf8))
  }

  /// A companion whose name another item has gets a number; one that is less protected, or no URI, stays an item.
  @Test func otherItemsStayWhatTheyAre() throws {
    try vault.setOtpauth(vault.add(KeychainSamples.generic("a"), "secret").id, Self.uri)
    var other = KeychainSamples.generic("a", "me/otp")
    try vault.add(other, "other")
    #expect(try migrate(vault, service).companions == ["a/me/otp-2"])
    #expect(try service.bytes(of: item("me/otp", in: service).id) == Array("other".utf8))
    let third = MemoryKeychain(holdsOtpauth: false)
    try third.add(KeychainSamples.generic("a"), "secret")
    other.attributes["belongsTo"] = Array("a/me".utf8)
    try third.add(other, "no URI")
    let target = MemoryKeychain()
    #expect(try migrate(third, target).joined.isEmpty)
    #expect(try target.items().count == 2)
  }

  @Test func whatIsRefusedTakesTheCompanionBack() throws {
    try vault.setOtpauth(vault.add(KeychainSamples.generic("a"), "secret").id, Self.uri)
    var guarded = KeychainSamples.generic("b")
    guarded.access = [.devicePasscode]
    try vault.add(guarded, "b")
    #expect(throws: KeychainMigration.Failure.self) {
      try migrate(vault, service) { item throws(StoreError) in
        guard item.access.isEmpty else { throw .accessDenied(reason: "refused") }
        return nil
      }
    }
    #expect(try service.items().isEmpty && vault.items().count == 2)
  }

  /// An earlier migration was killed when the copies were there.
  @Test func goesOnAfterAKill() throws {
    let id = try vault.add(KeychainSamples.generic("a"), "secret").id
    try vault.setOtpauth(id, Self.uri)
    try service.add(KeychainSamples.generic("a"), "secret")
    #expect(try migrate(vault, service).companions == ["a/me/otp"])
    #expect(try service.items().count == 2 && vault.items().isEmpty)
  }

  /// An earlier migration was killed between an item and its URI, where the new keychain takes both in two steps.
  @Test func copyWithoutItsURIIsCompleted() throws {
    let other = MemoryKeychain()
    try vault.setOtpauth(vault.add(KeychainSamples.generic("a"), "secret").id, Self.uri)
    try other.add(KeychainSamples.generic("a"), "secret")
    try migrate(vault, other)
    let moved = try item("me", in: other)
    #expect(try other.otpauthBytes(of: moved.id) == Array(Self.uri.utf8))
    #expect(try other.bytes(of: moved.id) == Array("secret".utf8) && vault.items().isEmpty)
    // One with another URI is another item.
    try vault.setOtpauth(vault.add(KeychainSamples.generic("a"), "secret").id, Self.uri + "&digits=8")
    #expect(throws: KeychainMigration.Failure.self) { try migrate(vault, other) }
    #expect(try vault.items().count == 1)
  }
}
