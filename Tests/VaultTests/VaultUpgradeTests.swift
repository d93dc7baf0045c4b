import Glibc
import Model
import SecretMemory
import Store
import StoreConformance
import Testing

@testable import Vault
@testable import VaultRecords

/// A vault of Keyhole 0.1 is brought to the present format.
@Suite(.timeLimit(.minutes(2))) struct VaultUpgradeTests {
  private func upgrade(
    _ fixture: VaultFixture, _ policy: VaultUpgrade.Policy = .refusesDistrusted
  ) throws -> VaultUpgrade.Report? {
    try VaultUpgrade.run(
      fixture.directory, stateDirectory: fixture.state, KeychainSamples.secret(""), policy, cost: .least)
  }

  @Test func everythingIsThereAfterwardsAndTheCopyOpensAsBefore() throws {
    let fixture = try VaultFormatTests.copied("v1")
    #expect(try VaultUpgrade.isNeeded(fixture.directory, stateDirectory: fixture.state))
    let report = try #require(try upgrade(fixture))
    #expect(report.keys.items == 3 && report.keys.damaged == 0 && report.keys.ofOtherDevices == 0)
    let engine = try fixture.open()
    #expect(try VaultFormatTests.listing(engine) == VaultFormatTests.expected("v1"))
    #expect(engine.problems().isEmpty && engine.trust == .trusted)
    for item in try engine.items() { try engine.set(item.id, [1]) }
    #expect(try fixture.open().trust == .trusted)
    #expect(try upgrade(fixture) == nil)

    #expect(report.copy == fixture.directory + "/vault-1.db")
    let copy = try VaultFormatTests.copied("v1")
    try write(contents(of: report.copy), to: copy.database)
    let old = try copy.open()
    #expect(try VaultFormatTests.listing(old) == VaultFormatTests.expected("v1"))
    // Another copy is never written over.
    try #require(unsafe rename(copy.database, copy.directory + "/vault-1.db") == 0)
    try write(contents(of: report.copy), to: copy.database)
    #expect(try upgrade(copy)?.copy == copy.directory + "/vault-1-2.db")
  }

  @Test func documentSaysHowTheResultIsRead() throws {
    let fixture = try VaultFormatTests.copied("v1")
    let before = try reader(fixture).entries()
    _ = try upgrade(fixture)
    let after = try reader(fixture).entries()
    #expect(Set(before.map(\.secret)) == Set(after.map(\.secret)) && after.count == 3)
  }

  @Test func rolledBackVaultIsUpgradedOnlyWhenAccepted() throws {
    let fixture = try VaultFormatTests.copied("v1")
    try fixture.edit("DELETE FROM item WHERE uuid = (SELECT uuid FROM item LIMIT 1)")
    let before = fixture.snapshot()
    #expect(failure { _ = try upgrade(fixture) }?.kind == "readOnly")
    #expect(before["vault.db"] == fixture.snapshot()["vault.db"])
    #expect(try upgrade(fixture, .acceptsAsItIs)?.keys.items == 2)
    #expect(try fixture.open().trust == .trusted)
  }

  @Test func openVaultOfThisProcessGoesOnAfterTheUpgrade() throws {
    let fixture = try VaultFormatTests.copied("v1")
    let engine = try fixture.open()
    let item = try #require(try engine.items().first)
    let secret = try engine.bytes(of: item.id)
    _ = try upgrade(fixture)
    #expect(try engine.bytes(of: item.id) == secret)
    try engine.set(item.id, [1])
  }

  /// Secrets of another device are not lost: with that device's key they open.
  @Test func secretOfAnotherDeviceIsCarriedOver() throws {
    let fixture = try VaultFormatTests.copied("v1")
    let deviceKey = contents(of: fixture.state + "/device.key")
    unsafe unlink(fixture.state + "/device.key")
    #expect(try #require(try upgrade(fixture)).keys.ofOtherDevices == 1)
    let item = try #require(
      try fixture.open().items().first { $0.accessibility == .afterFirstUnlockThisDeviceOnly })
    #expect(failure { _ = try fixture.open().secret(of: item.id) }?.kind == "accessDenied")
    try write(deviceKey, to: fixture.state + "/device.key")
    #expect(try fixture.open().bytes(of: item.id) == Array("line\n".utf8))
    try fixture.open().change(
      to: .passphrase, KeychainSamples.secret("p"), present: KeychainSamples.secret(""), cost: .least)
    let engine = try fixture.open()
    try engine.unlock(KeychainSamples.secret("p"))
    #expect(try engine.bytes(of: item.id) == Array("line\n".utf8))
  }

  private func reader(_ fixture: VaultFixture) throws -> IndependentReader {
    try IndependentReader(
      database: fixture.database, key: contents(of: fixture.key),
      deviceKey: contents(of: fixture.state + "/device.key"))
  }
}
