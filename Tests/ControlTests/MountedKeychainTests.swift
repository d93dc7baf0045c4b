import Control
import Glibc
import Model
import SecretMemory
import Store
import StoreConformance
import Testing

/// A mount's keychain, for another process.
@Suite(.serialized, .timeLimit(.minutes(1))) struct MountedKeychainTests {
  @Test(arguments: cases)
  func keepsTheProtocol(_ test: KeychainConformance.Case) throws {
    let mount = try Mount()
    try test.run({ mount.open() }, catchUp: { try Self.catchUp($0, mount) })
    mount.stop()
  }

  /// Without the one in which a secret changes and its time does not, which no program can do on a mount.
  private static let cases = KeychainConformance.casesWithoutPasswords.filter {
    $0.description != "what another engine changed is news once"
  }

  /// Returns when the engine has heard of everything.
  private static func catchUp(_ engine: any KeychainEngine, _ mount: Mount) throws {
    let mounted = try #require(engine as? MountedKeychain)
    let items = Set(try mount.engine.items())
    #expect(holds { Set(mounted.known) == items })
  }

  @Test func storeOverItReadsWritesAndHears() throws {
    let mount = try Mount()
    defer { mount.stop() }
    let store = KeychainStore(engine: mount.open())
    let added = try store.add(KeychainSamples.generic("a"), secret: KeychainSamples.secret("one"))
    #expect(try mount.engine.bytes(of: added.id) == Array("one".utf8))
    try mount.store.update([added.id]) { $0.label = "from there" }
    #expect(
      try holds {
        try store.refresh()
        return try store.read { $0[added.id] }?.label == "from there"
      })
    try store.remove([added.id])
    #expect(try mount.store.read { $0.count } == 0)
  }

  @Test func whoeverHasToBeAskedIsAskedByTheMount() throws {
    let mount = try Mount(reuse: 0)
    defer { mount.stop() }
    var item = KeychainSamples.generic("guarded")
    item.access = [.userPresence]
    let id = try mount.engine.add(item, "secret").id
    let store = KeychainStore(engine: mount.open())
    #expect(KeychainSamples.bytes(try store.secret(of: id)) == Array("secret".utf8))
    #expect(mount.person.questions.count == 1)
    #expect(mount.person.questions.first?.caller.process == Caller.current.identity().process)

    mount.person.say(.refused)
    #expect(throws: StoreError.accessDenied(reason: "a person refused")) { _ = try store.secret(of: id) }
    #expect(throws: StoreError.accessDenied(reason: "a person refused")) {
      try store.rewrite(id, readingSecret: false) { _, _ in }
    }
    #expect(throws: (any Error).self) { try store.update([id]) { $0.access = [] } }
    #expect(try mount.engine.items().first?.access == [.userPresence])
    // A change without an effect on the protection asks no question.
    try store.update([id]) { $0.label = "new" }
    try store.remove([id])
  }

  @Test func itemWithAPasswordIsOpenedByTheMount() throws {
    let mount = try Mount(reuse: 0)
    defer { mount.stop() }
    mount.person.say(.approved(ItemPassword(try KeychainSamples.secret("word"))))
    var item = KeychainSamples.generic("sealed")
    item.access = [.applicationPassword]
    let store = KeychainStore(engine: mount.open())
    let id = try store.add(item, secret: KeychainSamples.secret("secret")).id
    #expect(KeychainSamples.bytes(try store.secret(of: id)) == Array("secret".utf8))
    try store.rewrite(id, readingSecret: true) { _, secret throws(StoreError) in
      do { try secret.resize(to: 3) } catch { throw .outOfMemory }
    }
    let password = ItemPassword(try KeychainSamples.secret("word"))
    #expect(try mount.engine.using(password).bytes(of: id) == Array("sec".utf8))
    mount.person.say(.approved(ItemPassword(try KeychainSamples.secret("other"))))
    #expect(throws: StoreError.rejected) { _ = try store.secret(of: id) }
  }

  @Test func rulesOfFoldersAreChangedByTheMount() throws {
    let mount = try Mount()
    defer { mount.stop() }
    let scope = RuleScope.folder(.generic, "a")
    let store = KeychainStore(engine: mount.open())
    try store.setRules("ask *", of: scope, nil)
    #expect(try mount.store.folderRules().rules(of: scope) == "ask *")
    #expect(try store.folderRules().rules(of: scope) == "ask *")
    mount.person.say(.refused)
    #expect(throws: StoreError.accessDenied(reason: "a person refused")) {
      try store.setRules("allow *", of: scope, nil)
    }
    let rules = try #require(try mount.store.read { $0.rulesItem() })
    #expect(throws: (any Error).self) { try store.remove([rules.id]) }
    #expect(throws: StoreError.invalidValue(reason: "these are no rules for programs")) {
      _ = try mount.open().update([rules.id]) { $0.attributes["generic/b"] = Array("let * in".utf8) }
    }
    #expect(try mount.store.folderRules().rules(of: scope) == "ask *")
  }

  @Test func lockAndUnlockAreTheMounts() throws {
    let mount = try Mount()
    defer { mount.stop() }
    let id = try mount.store.add(KeychainSamples.generic("a"), secret: KeychainSamples.secret("one")).id
    let engine = mount.open()
    #expect(engine.lockState == .open)
    try mount.store.lock()
    #expect(holds { engine.lockState == .locked })
    #expect(throws: StoreError.locked) { _ = try engine.secret(of: id) }
    #expect(try engine.items().count == 1)
    try mount.store.unlock(KeychainSamples.secret("horse"))
    #expect(holds { engine.lockState == .open })
    #expect(try engine.bytes(of: id) == Array("one".utf8))
  }

  @Test func sealedKeychainIsReadOnceItIsOpen() throws {
    let mount = try Mount()
    defer { mount.stop() }
    let id = try mount.engine.add(KeychainSamples.generic("a"), "one").id
    mount.engine.seal("horse")
    let store = KeychainStore(engine: mount.open())
    #expect(throws: StoreError.locked) { try store.load() }
    try mount.store.unlock(KeychainSamples.secret("horse"))
    #expect(
      try holds {
        try store.refresh()
        return store.isLoaded && store.engine.locking.lockState == .open
      })
    #expect(KeychainSamples.bytes(try store.secret(of: id)) == Array("one".utf8))
  }

  @Test func withoutAMountItIsLockedAndComesBack() throws {
    let mount = try Mount()
    mount.stop()
    let engine = mount.open()
    #expect(engine.lockState == .sealed)
    #expect(throws: StoreError.locked) { _ = try engine.items() }
  }

  @Test func readOnlyMountChangesNothing() throws {
    let mount = try Mount(isReadOnly: true)
    defer { mount.stop() }
    let id = try mount.engine.add(KeychainSamples.generic("a"), "one").id
    let engine = mount.open()
    let refused = StoreError.readOnly(reason: "the mount is read-only")
    #expect(throws: refused) { try engine.add(KeychainSamples.generic("b"), "two") }
    #expect(throws: refused) { _ = try engine.update([id]) { $0.label = "x" } }
    #expect(throws: refused) { try engine.set(id, [1]) }
    #expect(throws: refused) { try engine.remove([id]) }
    #expect(try engine.bytes(of: id) == Array("one".utf8))
  }

  @Test(.timeLimit(.minutes(1))) func hungMountIsUnreachableInTime() throws {
    let mount = try Mount(isSilent: true)
    defer { mount.stop() }
    let engine = mount.open(patience: 1)
    #expect(throws: StoreError.unreachable(reason: "the mount's process does not answer")) {
      _ = try engine.secret(of: ItemID(rawValue: "a"))
    }
  }
}
