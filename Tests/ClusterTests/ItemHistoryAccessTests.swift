import Cluster
import ClusterInMemory
import ClusterRecords
import EtcdClient
import Model
import SecretMemory
import Store
import StoreConformance
import Suites
import Synchronization
import Testing
import VaultRecords

/// Versions of items of a store in a cluster open under what protects them and what protects the item, now and after a rotation.
@Suite(.timeLimit(.minutes(1))) struct ItemHistoryAccessTests {
  private final class Person: Authenticator {
    let demands = Mutex<[Demand?]>([])

    func ask(_ question: Question, _ withdrawal: Withdrawal) -> Answer {
      demands.withLock { $0.append(question.demand) }
      return .approved(nil)
    }
  }

  private let folder: TemporaryFolder
  private let cluster = MemoryCluster()
  private let store: ClusterStore
  private let keychain: ClusterKeychain

  init() throws {
    folder = try TemporaryFolder()
    let files = folder.files("first")
    store = try ClusterStore.create(
      MemoryCluster.Client(cluster), store: "team", files: files, passphrase: KeychainSamples.secret("p"),
      cost: .least)
    keychain = store.keychain()
    keychain.keep(.standard)
  }

  @Test func flagsThenAndNowAreDemanded() throws {
    defer { keychain.close() }
    let person = Person()
    var options = AccessController.Options()
    options.reuse = 0
    let store = KeychainStore(engine: keychain, controller: AccessController(person, options))
    let item = try store.add(KeychainSamples.generic("a"), secret: KeychainSamples.secret("one"))
    let permit = try store.permission(for: item.id, to: .write, path: "a", by: .current).fetch()
    try store.rewrite(item.id, readingSecret: false, permit) { _, secret throws(StoreError) in
      do { secret = try KeychainSamples.secret("two") } catch { throw .outOfMemory }
    }
    let version = try #require(try store.versions(of: item.identity).last)
    let read = {
      let permit = try store.permission(for: version.item.id, to: .read, path: "a", by: .current).fetch()
      return KeychainSamples.bytes(try store.secret(of: version.item.id, permit))
    }
    #expect(try read() == Array("one".utf8))
    #expect(person.demands.withLock { $0.isEmpty })
    var guarded = try #require(try store.item(item.id))
    guarded.access = [.devicePasscode]
    let change = try store.permission(for: item, changingTo: guarded, path: "a", by: .current).fetch()
    try store.update([item.id], change) { $0.access = [.devicePasscode] }
    person.demands.withLock { $0 = [] }
    #expect(throws: StoreError.self) { _ = try store.secret(of: version.item.id) }
    #expect(throws: StoreError.self) { try store.restore(version) }
    #expect(try read() == Array("one".utf8))
    #expect(person.demands.withLock { $0 } == [.passcode])
    // Nor does a removal open it.
    try store.remove([item.id])
    #expect(throws: StoreError.self) { _ = try store.secret(of: version.item.id) }
  }

  @Test func aLockTakesTheSecretsOfVersions() throws {
    defer { keychain.close() }
    var item = KeychainSamples.generic("a")
    item.accessibility = .afterFirstUnlock
    let id = try keychain.add(item, "one").id
    try keychain.set(id, Array("two".utf8))
    let version = try #require(try keychain.versions(of: item.identity).last)
    try keychain.locking.lock()
    #expect(try keychain.bytes(of: version.item.id) == Array("one".utf8), "its class survives a lock")
    let passphrase = try KeychainSamples.secret("p")
    try keychain.locking.unlock(passphrase)
    _ = try keychain.update([id]) { $0.accessibility = .whenUnlocked }
    try keychain.locking.lock()
    #expect(try keychain.versions(of: item.identity).count == 2)
    for version in try keychain.versions(of: item.identity) {
      expect(.locked) { _ = try keychain.secret(of: version.item.id) }
    }
  }

  @Test func versionsOutlastARotation() throws {
    let suites = store.suites(propertyLists: PropertyLists())
    defer {
      suites.close()
      keychain.close()
    }
    let item = try keychain.add(KeychainSamples.generic("a"), "one")
    try keychain.set(item.id, Array("two".utf8))
    let removed = try keychain.add(KeychainSamples.generic("b"), "gone")
    try keychain.remove([removed.id])
    let passphrase = try KeychainSamples.secret("p")
    try store.rotate(passphrase, suites: suites, keychain: keychain)
    let files = folder.files("first")
    let again = try ClusterStore(MemoryCluster.Client(cluster), store: "team", files: files)
    try again.unlock(passphrase)
    let reader = again.keychain()
    reader.keep(.standard)
    defer { reader.close() }
    let version = try #require(try reader.versions(of: item.identity).last)
    #expect(try reader.bytes(of: version.item.id) == Array("one".utf8))
    let last = try #require(try reader.versions(of: removed.identity).last)
    _ = try reader.restore(last.item.id)
    #expect(try reader.bytes(of: removed.id) == Array("gone".utf8))
    // The versions are sealed under the new keys alone.
    #expect(again.session.keys.epoch == 2)
    expect(.damaged(what: "")) { _ = try again.session.keys.key(.items, epoch: 1) }
  }
}
