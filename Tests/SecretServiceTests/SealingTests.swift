import InMemory
import KeychainSelection
import KeyringHarness
import Model
import SecretMemory
import SecretService
import Store
import StoreConformance
import Testing
import Vault
import VaultRecords

@testable import Sealing

/// Changes of a sealed item in the keyring itself, and their effect.
@Suite(.serialized, .timeLimit(.minutes(2))) struct SealingTests {
  let bus: PrivateBus
  let keychain: SealingKeychain
  /// The same keyring without a vault.
  let keyring: SecretServiceEngine

  init() throws {
    bus = try PrivateBus()
    try bus.startKeyring()
    keychain = try SealingKeychain(bus)
    keyring = try SecretServiceEngine(address: bus.address)
    _ = try keyring.items()
  }

  private func sealed(_ name: ExactString, _ access: AccessFlags = []) throws -> Item {
    var item = KeychainSamples.generic(name)
    (item.isSealed, item.access) = (true, access)
    let added = try keychain.add(item, secret: KeychainSamples.secret("secret of \(name.string)"))
    try keyring.catchUp()
    return added
  }

  private func vault(_ part: VaultPart) throws -> VaultEngine {
    try VaultEngine(
      directory: bus.folder + "/data/keyhole", stateDirectory: bus.folder + "/state", part: part)
  }

  /// An item as the keyring has it, and as it shows.
  private func seen(_ item: ItemID) throws -> (there: Item?, here: Item?) {
    try keychain.catchUp()
    return (try keyring.items().first { $0.id == item }, keychain.known(item))
  }

  private func expectDamage(_ item: ItemID) {
    #expect { try keychain.bytes(of: item) } throws: { error in
      if case StoreError.damaged = error { true } else { false }
    }
    #expect { try keychain.set(item, [1]) } throws: { error in
      if case StoreError.damaged = error { true } else { false }
    }
  }

  @Test func keyringGetsWhatOnlyTheVaultOpens() throws {
    let item = try sealed("a", [.userPresence])
    let there = try keyring.bytes(of: item.id)
    #expect(there.starts(with: Array("keyhole-sealed:1:".utf8)))
    #expect(try keychain.bytes(of: item.id) == Array("secret of a".utf8))
    let (stored, shown) = try seen(item.id)
    #expect(stored?.isSealed == true && stored?.access == [.userPresence] && stored?.size == there.count)
    #expect(shown?.size == 11 && shown == item)
    #expect(try bus.run("secret-tool lookup keyhole.sealed true").utf8.elementsEqual(there))
    #expect(try vault(.items).items().isEmpty && vault(.seals).items().count == 1)
  }

  @Test func nothingIsMadeBeforeItIsNeeded() throws {
    try keychain.add(KeychainSamples.generic("plain"), "1")
    #expect(try bus.run("ls \"$0/data\"") == "keyrings\n")
    #expect(try keychain.items().allSatisfy { !$0.isSealed } && keychain.isOpenThroughout)
  }

  /// Flags, class and mark count as the vault has them.
  @Test func nothingIsWeakenedInTheKeyring() throws {
    let item = try sealed("a", [.devicePasscode])
    _ = try keyring.update([item.id]) { item in
      (item.access, item.isSealed, item.accessibility) = ([], false, .afterFirstUnlock)
    }
    let (there, here) = try seen(item.id)
    #expect(there?.access == [] && there?.isSealed == false)
    #expect(here == item)
    #expect(try keychain.bytes(of: item.id) == Array("secret of a".utf8))
    #expect(keychain.known(item.id)?.size == 11)
    try keychain.set(item.id, Array("new".utf8))
    #expect(try keyring.bytes(of: item.id).starts(with: Array("keyhole-sealed:1:".utf8)))
  }

  @Test func nothingIsSwappedInTheKeyring() throws {
    let (a, b) = (try sealed("a"), try sealed("b"))
    try keyring.set(a.id, keyring.bytes(of: b.id))
    expectDamage(a.id)
    #expect(try keychain.bytes(of: b.id) == Array("secret of b".utf8))
  }

  @Test func nothingIsMovedInTheKeyring() throws {
    let item = try sealed("a")
    _ = try keyring.update([item.id]) { $0.identity = .generic(service: "b", account: "me") }
    _ = try seen(item.id)
    expectDamage(item.id)
    _ = try keyring.update([item.id]) { $0.identity = item.identity }
    _ = try seen(item.id)
    #expect(try keychain.bytes(of: item.id) == Array("secret of a".utf8))
  }

  @Test(arguments: [0, 17, 20, -1]) func everyChangedByteIsDamage(_ position: Int) throws {
    let item = try sealed("a")
    var bytes = try keyring.bytes(of: item.id)
    let index = position < 0 ? bytes.count + position : position
    bytes[index] = bytes[index] == 0x41 ? 0x42 : 0x41
    try keyring.set(item.id, bytes)
    _ = try seen(item.id)
    expectDamage(item.id)
    #expect(try keyring.bytes(of: item.id) == bytes)
    try keychain.remove([item.id])
    #expect(try keychain.items().isEmpty && vault(.seals).items().isEmpty)
  }

  /// A program that knows nothing of seals has stored its password again.
  @Test func whatReplacesASealedSecretIsTakenOnDemandOnly() throws {
    let item = try sealed("a")
    try keyring.set(item.id, Array("theirs".utf8))
    _ = try seen(item.id)
    expectDamage(item.id)
    let taken = try keychain.update([item.id]) { $0.isSealed = false }
    #expect(!taken[0].isSealed && taken[0].size == 6)
    #expect(try keychain.bytes(of: item.id) == Array("theirs".utf8))
    #expect(try vault(.seals).items().isEmpty)
  }

  @Test func presentItemIsSealedAndUnsealed() throws {
    let item = try keychain.add(KeychainSamples.generic("a"), "secret of a")
    try keyring.catchUp()
    let sealed = try keychain.update([item.id]) { $0.isSealed = true }[0]
    #expect(sealed.isSealed && sealed.size == 11)
    #expect(try keyring.bytes(of: item.id).count > 50)
    #expect(try keychain.bytes(of: item.id) == Array("secret of a".utf8))
    let unsealed = try keychain.update([item.id]) { $0.isSealed = false }[0]
    #expect(!unsealed.isSealed && unsealed.size == 11)
    #expect(try keyring.bytes(of: item.id) == Array("secret of a".utf8))
    #expect(try vault(.seals).items().isEmpty)
  }

  /// As after a crash between the vault's part and the keyring's.
  @Test(arguments: [true, false]) func halfAMoveIsReadable(isVaultOnly: Bool) throws {
    let item = try sealed("a")
    let new = ItemIdentity.generic(service: "b", account: "me")
    let seals = try vault(.seals)
    let seal = try #require(seals.items().first)
    _ = try seals.update([seal.id]) { seal in
      seal.formerSeal = seal.identity
      seal.identity = new.seal
    }
    if !isVaultOnly { _ = try keyring.update([item.id]) { $0.identity = new } }
    _ = try seen(item.id)
    _ = try keychain.items()
    #expect(try keychain.bytes(of: item.id) == Array("secret of a".utf8))
    // An item at the old path, or at the new one, does not take the seal away.
    let other = try self.sealed(isVaultOnly ? "b" : "a")
    #expect(try keychain.bytes(of: item.id) == Array("secret of a".utf8))
    #expect(try keychain.bytes(of: other.id).count == 11)
  }

  @Test(arguments: [true, false]) func halfASealIsReadable(isSealed: Bool) throws {
    let item = try sealed("a")
    let seals = try vault(.seals)
    _ = try seals.update([#require(seals.items().first).id]) { $0.unfinishedSize = 11 }
    if !isSealed { try keyring.set(item.id, Array("secret of a".utf8)) }
    _ = try seen(item.id)
    _ = try keychain.items()
    #expect(try keychain.bytes(of: item.id) == Array("secret of a".utf8))
    try keychain.set(item.id, Array("new".utf8))
    #expect(try keychain.bytes(of: item.id) == Array("new".utf8))
  }

  /// As after a crash between the vault's part and the keyring's, in which the secret would have become a longer one.
  @Test func halfASealIsMigrated() throws {
    let item = try keychain.add(KeychainSamples.generic("a"), "secret of a")
    try keyring.catchUp()
    let sealed = try sealed("b")
    let seals = try vault(.seals)
    for seal in try seals.items() { _ = try seals.update([seal.id]) { $0.unfinishedSize = 300 } }
    _ = try seen(sealed.id)
    _ = try keychain.items()
    #expect(keychain.known(sealed.id)?.size == 300)
    let target = MemoryKeychain()
    let migration = KeychainMigration(from: keychain, to: target) { _ in nil }
    try migration.run(migration.plan()) { _ in }
    let moved = try target.items()
    #expect(moved.map(\.size) == [11, 11] && moved.contains { $0.identity == item.identity })
  }

  /// A copy that has no secret yet is completed as the migration stores others: sealed.
  @Test func copyWithoutASecretIsCompletedSealed() throws {
    let half = try keyring.add(KeychainSamples.generic("a"), "")
    let source = MemoryKeychain()
    try source.add(KeychainSamples.generic("a"), "secret of a")
    _ = try keychain.items()
    let migration = KeychainMigration(from: source, to: keychain, sealing: true) { _ in nil }
    try migration.run(migration.plan()) { _ in }
    try keyring.catchUp()
    #expect(try keyring.bytes(of: half.id).starts(with: Array("keyhole-sealed:1:".utf8)))
    #expect(try keychain.bytes(of: half.id) == Array("secret of a".utf8) && source.items().isEmpty)
  }

  @Test func lockedVaultShowsTheItemAndOpensNothing() throws {
    let item = try sealed("a", [.userPresence])
    let first = try keychain.add(KeychainSamples.generic("plain"), "1")
    try vault(.items).change(
      to: .passphrase, KeychainSamples.secret("pw"), present: SecretBytes(), cost: .least)
    _ = try keyring.update([item.id]) { $0.access = [] }
    // Another process, which has not unlocked anything.
    let locked = try SealingKeychain(bus)
    let shown = try locked.items().first { $0.id == item.id }
    #expect(shown?.size == 11 && shown?.isSealed == true && shown?.access == [])
    #expect(!locked.isAccessible(item) && locked.isAccessible(first) && !locked.isOpenThroughout)
    #expect(throws: StoreError.locked) { _ = try locked.bytes(of: item.id) }
    #expect(throws: StoreError.locked) { try locked.set(item.id, [1]) }
    #expect(throws: StoreError.locked) { try locked.unlock(SecretBytes()) }
    #expect(throws: StoreError.rejected) { try locked.unlock(KeychainSamples.secret("wrong")) }
    #expect(try locked.bytes(of: first.id) == [0x31])
    try locked.unlock(KeychainSamples.secret("pw"))
    // The vault's report of it has to arrive first.
    #expect(throws: StoreError.locked) { _ = try locked.bytes(of: item.id) }
    #expect(locked.takeNews().contains { $0.id == item.id && $0.item?.access == item.access })
    #expect(try locked.bytes(of: item.id) == Array("secret of a".utf8))
  }

  @Test func missingVaultIsDamageAndNoOther() throws {
    let item = try sealed("a")
    let plain = try keychain.add(KeychainSamples.generic("plain"), "1")
    try bus.run("rm -r \"$0/data/keyhole\"")
    let other = try SealingKeychain(bus)
    #expect(try other.items().count == 2 && other.bytes(of: plain.id) == [0x31])
    #expect { try other.bytes(of: item.id) } throws: { error in
      if case StoreError.damaged = error { true } else { false }
    }
  }
}
