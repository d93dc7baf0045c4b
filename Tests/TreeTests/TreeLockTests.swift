import Model
import Platform
import Store
import StoreConformance
import Testing
import Tree

/// SPECIFICATION.md, section 8: what a locked keychain shows and refuses.
@Suite struct TreeLockTests {
  private static let item = "keychain/generic/S/A"
  private static let value = item + "/value"
  private let fixture = TreeFixture()

  private func unlock(_ passphrase: String = "") throws {
    try fixture.tree.keychain?.unlock(KeychainSamples.secret(passphrase))
  }

  @Test func lockedSecretIsRefusedButShown() throws {
    try fixture.makeItem(Self.item, "secret")
    try fixture.tree.lock()
    #expect(try fixture.list(Self.item) == ["value"])
    #expect(try fixture.status(Self.value).size == 6)
    #expect(try fixture.attribute("user.service", Self.item) == "S")
    #expect(throws: StoreError.locked) { _ = try fixture.read(Self.value) }
    #expect(throws: StoreError.locked) { _ = try fixture.open(Self.value, [.write, .truncate]) }
    #expect(throws: StoreError.locked) { try fixture.setAttribute("user.comment", "x", Self.item) }
    #expect(throws: StoreError.locked) { try fixture.rename(Self.item, "keychain/generic/S/B") }
    try unlock()
    #expect(try fixture.read(Self.value) == "secret")
  }

  @Test func afterFirstUnlockOutlastsALock() throws {
    try fixture.makeItem(Self.item, "secret")
    try fixture.setAttribute("user.keyhole.accessible", "afterFirstUnlock", Self.item)
    try fixture.tree.lock()
    #expect(try fixture.read(Self.value) == "secret")
    try fixture.write(Self.value, "new")
    #expect(throws: StoreError.locked) {
      try fixture.setAttribute("user.keyhole.accessible", "whenUnlocked", Self.item)
    }
    #expect(try fixture.read(Self.value) == "new")
  }

  @Test func lockedItemCanBeRemoved() throws {
    try fixture.makeItem(Self.item, "secret")
    try fixture.tree.lock()
    try fixture.remove(Self.value)
    #expect(try fixture.list(Self.item) == [])
    #expect(throws: StoreError.locked) { _ = try fixture.create(Self.value) }
    #expect(try fixture.list(Self.item) == [])
  }

  @Test func renamingOverALockedSecretIsRefused() throws {
    try fixture.makeItem(Self.item, "secret")
    try fixture.tree.lock()
    try fixture.write(Self.item + "/x.swp", "new")
    #expect(throws: StoreError.locked) { try fixture.rename(Self.item + "/x.swp", Self.value) }
    try unlock()
    #expect(try fixture.read(Self.value) == "secret")
  }

  @Test func openFilesAndScratchAreWipedByALock() throws {
    try fixture.makeItem(Self.item, "secret")
    let reader = try fixture.open(Self.value, .read)
    let writer = try fixture.open(Self.value, [.write, .truncate])
    try writer.write("new", at: 0)
    try fixture.write(Self.item + "/.x.swp", "a copy")
    let scratch = try fixture.open(Self.item + "/.x.swp", .read)
    try fixture.tree.lock()
    #expect(throws: StoreError.locked) { _ = try reader.bytes() }
    #expect(throws: StoreError.locked) { try writer.write("more", at: 3) }
    #expect(throws: StoreError.locked) { try writer.flush(by: .current) }
    #expect(throws: StoreError.locked) { _ = try scratch.bytes() }
    #expect(try fixture.list(Self.item) == ["value"])
    writer.close()
    try unlock()
    #expect(throws: StoreError.locked) { _ = try reader.bytes() }
    #expect(try fixture.read(Self.value) == "secret")
  }

  @Test func openFilesOfWhatOutlastsALockStay() throws {
    try fixture.makeItem(Self.item, "secret")
    try fixture.setAttribute("user.keyhole.accessible", "afterFirstUnlock", Self.item)
    let reader = try fixture.open(Self.value, .read)
    try fixture.tree.lock()
    #expect(try reader.bytes() == Array("secret".utf8))
  }

  @Test func neverUnlockedKeychainShowsItsClassesOnly() throws {
    fixture.items.seal("p")
    #expect(try fixture.list("keychain") == ["generic", "internet", "other"])
    #expect(try fixture.status("keychain/generic").links == 2)
    #expect(throws: StoreError.locked) { _ = try fixture.list("keychain/generic") }
    #expect(throws: StoreError.locked) { _ = try fixture.node("keychain/generic/S") }
    #expect(throws: StoreError.locked) { try fixture.makeDirectories("keychain/generic/S") }
    #expect(throws: StoreError.rejected) { try unlock("q") }
    try unlock("p")
    #expect(try fixture.list("keychain/generic") == [])
  }

  @Test func classThatNeedsAPassphraseIsRefusedWithoutOne() throws {
    try fixture.makeItem(Self.item, "secret")
    #expect {
      try fixture.setAttribute("user.keyhole.accessible", "whenPasscodeSetThisDeviceOnly", Self.item)
    } throws: {
      ($0 as? StoreError)?.errno.rawValue == StoreError.invalidValue(reason: "").errno.rawValue
    }
    fixture.items.seal("p")
    try unlock("p")
    try fixture.setAttribute("user.keyhole.accessible", "whenPasscodeSetThisDeviceOnly", Self.item)
    #expect(try fixture.read(Self.value) == "secret")
  }
}
