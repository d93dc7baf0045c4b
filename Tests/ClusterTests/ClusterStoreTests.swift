import Cluster
import ClusterInMemory
import ClusterRecords
import Crypto
import EtcdClient
import Model
import SecretMemory
import Store
import StoreConformance
import Suites
import Testing
import VaultRecords

/// Devices that make a store, join it, and are taken away.
@Suite(.timeLimit(.minutes(2))) struct ClusterStoreTests {
  private let devices: TestDevices

  init() throws { devices = try TestDevices() }

  private var folder: TemporaryFolder { devices.folder }

  private var cluster: MemoryCluster { devices.cluster }

  private func files(_ name: String) -> DeviceFiles { devices.files(name) }

  private func client() -> MemoryCluster.Client { devices.client() }

  private func secret(_ text: String) throws -> SecretBytes { try KeychainSamples.secret(text) }

  private func create() throws -> ClusterStore { try devices.create() }

  private func request(_ name: String) throws -> String {
    try ClusterStore.requestJoining(
      client(), store: "team", files: files(name), passphrase: try secret("p-\(name)"), cost: .least)
  }

  private func open(_ name: String) throws -> ClusterStore {
    try ClusterStore(client(), store: "team", files: files(name))
  }

  private func unlocked(_ name: String) throws -> ClusterStore {
    let store = try open(name)
    let passphrase = try secret("p-\(name)")
    try store.unlock(passphrase)
    return store
  }

  /// A second device that belongs to the store.
  private func join(_ name: String, _ first: ClusterStore) throws -> ClusterStore {
    try devices.join(name, first)
    return try unlocked(name)
  }

  @Test func aStoreIsOpenedByItsDeviceAndPassphraseOnly() throws {
    let suites = try create().suites(propertyLists: PropertyLists())
    _ = try suites.create("app")
    suites.close()
    let wrong = try secret("wrong")
    let none = try SecretBytes()
    let store = try open("first")
    expect(.rejected) { try store.unlock(wrong) }
    expect(.locked) { try store.unlock(none) }
    let sealed = store.suites(propertyLists: PropertyLists())
    expect(.locked) { _ = try sealed.suites() }
    let right = try secret("p-first")
    try store.unlock(right)
    #expect(try Array(sealed.suites().keys) == ["app"])
    sealed.close()
    // A store that was begun goes on, until there is a recovery code.
    #expect(try create().device == store.device)
    _ = try store.makeRecoveryCode(right)
    expect(.exists) { _ = try create() }
    expect(.notFound) { _ = try open("other") }
  }

  @Test func aLockTakesTheSecretsOfItsClass() throws {
    let store = try create()
    let keychain = store.keychain()
    defer { keychain.close() }
    let id = try keychain.add(KeychainSamples.generic("a"), "one").id
    var lasting = KeychainSamples.generic("b")
    lasting.accessibility = .afterFirstUnlock
    let other = try keychain.add(lasting, "two").id
    try keychain.locking.lock()
    #expect(keychain.locking.lockState == .locked)
    expect(.locked) { _ = try keychain.secret(of: id) }
    expect(.locked) { try store.publishSight(nil, keychain) }
    #expect(try keychain.bytes(of: other) == Array("two".utf8))
    #expect(try keychain.items().count == 2)
    let right = try secret("p-first")
    try keychain.locking.unlock(right)
    #expect(try keychain.bytes(of: id) == Array("one".utf8))
  }

  @Test func aDeviceJoinsByACodeOnBothSides() throws {
    let first = try create()
    let writer = first.suites(propertyLists: PropertyLists())
    defer { writer.close() }
    _ = try writer.create("app")
    let code = try request("second")
    let joining = try #require(try first.requests().first)
    let answer = try first.code(of: joining)
    let one = try secret("p-first")
    let two = try secret("p-second")
    // Neither side goes on without the code and its passphrase.
    let other = try RecoveryCode.text(of: RecoveryCode.make())
    let wrong = String(decoding: other.unprotected, as: UTF8.self)
    expect(.rejected) { try first.approve(joining.device.id, code: wrong, one) }
    expect(.rejected) { try first.approve(joining.device.id, code: code, two) }
    // Nor by the code that it shows itself.
    expect(.rejected) { try first.approve(joining.device.id, code: answer, one) }
    let second = try open("second")
    expect(.notPermitted(reason: "")) { try second.unlock(two) }
    expect(.rejected) { try second.confirm(code: wrong, two) }
    expect(.rejected) { try second.confirm(code: code, two) }
    try second.confirm(code: answer, two)
    expect(.notPermitted(reason: "")) { try second.unlock(two) }
    try first.approve(joining.device.id, code: code, one)
    try second.unlock(two)
    let reader = second.suites(propertyLists: PropertyLists())
    defer { reader.close() }
    #expect(try Array(reader.suites().keys) == ["app"])
    #expect(try first.requests().isEmpty)
    #expect(try second.members().count == 2)
  }

  @Test func aRequestWithOtherKeysHasAnotherCode() throws {
    let first = try create()
    let code = try request("second")
    let joining = try #require(try first.requests().first)
    // The cluster puts keys of its own in the device's place.
    var forged = try MemberSecret.random().publicKeys()
    forged.id = joining.device.id
    let key = try ClusterPaths(store: "team").request(forged.id)
    cluster.put(key, JoinRequest(device: forged, position: joining.position).encoded)
    let passphrase = try secret("p-first")
    expect(.rejected) { try first.approve(forged.id, code: code, passphrase) }
  }

  @Test func anotherStoreInItsPlaceHasAnotherCode() throws {
    let first = try create()
    _ = try request("second")
    let code = try first.code(of: try #require(try first.requests().first))
    // The cluster shows a store of its own to the device that joins.
    let forged = MemoryCluster()
    _ = try ClusterStore.create(
      MemoryCluster.Client(forged), store: "team", files: files("forger"), passphrase: try secret("f"),
      cost: .least)
    let device = try #require(try first.requests().first).device
    let paths = try ClusterPaths(store: "team")
    forged.put(paths.request(device.id), JoinRequest(device: device, position: 1).encoded)
    let second = try ClusterStore(MemoryCluster.Client(forged), store: "team", files: files("second"))
    let two = try secret("p-second")
    #expect(throws: StoreError.self) { try second.confirm(code: code, two) }
  }

  @Test func aMemberThatIsTakenAwayOpensNothingNew() throws {
    let first = try create()
    let second = try join("second", first)
    let suites = first.suites(propertyLists: PropertyLists())
    let keychain = first.keychain()
    let (reader, items) = (second.suites(propertyLists: PropertyLists()), second.keychain())
    defer {
      suites.close()
      keychain.close()
      reader.close()
      items.close()
    }
    _ = try suites.create("app")
    try suites.set("n", .integer(1), in: "app")
    let id = try keychain.add(KeychainSamples.generic("a"), "before").id
    #expect(try reader.value("n", in: "app") == .integer(1))
    #expect(try items.bytes(of: id) == Array("before".utf8))
    let passphrase = try secret("p-first")
    try first.rotate(removing: [second.device], passphrase, suites: suites, keychain: keychain)
    try keychain.set(id, Array("after".utf8))
    try suites.set("n", .integer(2), in: "app")
    #expect(try keychain.bytes(of: id) == Array("after".utf8))
    #expect(throws: StoreError.self) { _ = try items.secret(of: id) }
    #expect(throws: StoreError.self) { try reader.set("n", .integer(3), in: "app") }
    let two = try secret("p-second")
    expect(.notPermitted(reason: "")) { try open("second").unlock(two) }
    // Those who stay open all that was there before.
    let again = try unlocked("first")
    let (newSuites, newKeychain) = (again.suites(propertyLists: PropertyLists()), again.keychain())
    defer {
      newSuites.close()
      newKeychain.close()
    }
    #expect(try newSuites.value("n", in: "app") == .integer(2))
    #expect(try newKeychain.bytes(of: id) == Array("after".utf8))
    #expect(try again.members().count == 1)
  }

  @Test func membersWhoStayFollowARotation() throws {
    let first = try create()
    _ = try join("second", first)
    let way = client()
    let second = try ClusterStore(way, store: "team", files: files("second"))
    let two = try secret("p-second")
    try second.unlock(two)
    let suites = first.suites(propertyLists: PropertyLists())
    let keychain = first.keychain()
    let reader = second.suites(propertyLists: PropertyLists())
    defer {
      suites.close()
      keychain.close()
      reader.close()
    }
    _ = try suites.create("app")
    suites.keep(HistoryRetention.standard)
    for value in [0, 1] as [Int128] { try suites.set("n", .integer(value), in: "app") }
    let settings = SettingsStore(engine: reader)
    #expect(try settings.presentSuite("app").fetch()?.entries["n"]?.value == .integer(1))
    let passphrase = try secret("p-first")
    try first.rotate(passphrase, suites: suites, keychain: keychain)
    try suites.set("n", .integer(2), in: "app")
    way.settle()
    #expect(try settings.presentSuite("app").fetch()?.entries["n"]?.value == .integer(2))
    try reader.set("m", .integer(1), in: "app")
    #expect(try reader.value("n", in: "app") == .integer(2))
    // Where a second has passed, the value after it is kept too.
    #expect(reader.versions(of: "app").first?.value == .integer(0), "what was kept is sealed again")
  }

  @Test func aRecoveryCodeMakesADevice() throws {
    let first = try create()
    let suites = first.suites(propertyLists: PropertyLists())
    defer { suites.close() }
    _ = try suites.create("app")
    let passphrase = try secret("p-first")
    let code = try first.makeRecoveryCode(passphrase)
    let other = try RecoveryCode.make()
    #expect(throws: StoreError.rejected) {
      _ = try ClusterStore.recover(
        client(), store: "team", files: files("wrong"), code: other, passphrase: try secret("x"), cost: .least
      )
    }
    let third = try ClusterStore.recover(
      client(), store: "team", files: files("third"), code: code, passphrase: try secret("p-third"),
      cost: .least)
    let reader = third.suites(propertyLists: PropertyLists())
    defer { reader.close() }
    #expect(try Array(reader.suites().keys) == ["app"])
    #expect(try first.members().count == 3)
  }

  @Test func theListOfMembersCantBeForgedOrCut() throws {
    let first = try create()
    _ = try join("second", first)
    let paths = try ClusterPaths(store: "team")
    let one = try secret("p-first")
    let last = try #require(cluster.value(paths.log(1)))
    // A device that is no member adds itself.
    let forger = try MemberSecret.random()
    var log = MemberLog(store: first.session.keys.store)
    for position in 0..<2 { try log.append(try #require(cluster.value(paths.log(UInt64(position)))).value) }
    let forged = try log.next(.add(forger.publicKeys()), epoch: 1, identity: log.identity, by: forger)
    cluster.put(paths.log(2), forged)
    expect(.damaged(what: "")) { try open("first").unlock(one) }
    cluster.delete(paths.log(2))
    try open("first").unlock(one)
    cluster.delete(paths.log(1))
    expect(.damaged(what: "")) { try open("first").unlock(one) }
    cluster.put(paths.log(1), last.value)
    try open("first").unlock(one)
  }

  @Test func aListOfMembersNeedsTheSignatureOfAMember() throws {
    let first = try create()
    let store = first.session.keys.store
    var log = MemberLog(store: store)
    try log.append(try #require(cluster.value(ClusterPaths(store: "team").log(0))).value)
    // Another key under the number of a member.
    var seeds = try SecretBytes(count: MemberSecret.length)
    seeds[0] = 1
    let forger = try MemberSecret(id: first.device, seeds)
    let added = try MemberSecret.random().publicKeys()
    let forged = try log.next(.add(added), epoch: 1, identity: log.identity, by: forger)
    expect(.damaged(what: "")) { try log.append(forged) }
    let rotated = try log.next(
      .rotate(removing: []), epoch: 2, identity: [UInt8](repeating: 1, count: 32), by: forger)
    expect(.damaged(what: "")) { try log.append(rotated) }
    #expect(log.count == 1 && log.members.count == 1)
  }

  @Test func aSlotWithAnotherMasterKeyIsRefused() throws {
    let first = try create()
    let store = first.session.keys.store
    let paths = try ClusterPaths(store: "team")
    let member = try #require(first.members().first)
    var log = MemberLog(store: store)
    try log.append(try #require(cluster.value(paths.log(0))).value)
    // As CLUSTER-FORMAT.md says what a slot is bound to: so that only the master key is another one.
    var binding = FieldWriter()
    binding.put(raw: "keyhole/c1".utf8)
    binding.put(1, store)
    binding.put(2, 5 as UInt8)
    binding.put(3, member.id)
    binding.put(5, 1 as UInt32)
    binding.put(6, log.identity)
    let other = try member.seal(SymmetricKey(size: .bits256), boundTo: binding.bytes)
    let good = try #require(cluster.value(paths.slot(first.device))).value
    cluster.put(paths.slot(first.device), good.prefix(5) + other)
    let right = try secret("p-first")
    expect(.damaged(what: "")) { try open("first").unlock(right) }
    cluster.put(paths.slot(first.device), good)
    try open("first").unlock(right)
    let forged = try MemberSlot.seal(
      SymmetricKey(size: .bits256), to: try #require(first.members().first), store, epoch: 1)
    cluster.put(try ClusterPaths(store: "team").slot(first.device), forged)
    let one = try secret("p-first")
    expect(.damaged(what: "")) { try open("first").unlock(one) }
  }

  @Test func whatADeviceHasSeenIsKept() throws {
    let first = try create()
    let suites = first.suites(propertyLists: PropertyLists())
    _ = try suites.create("app")
    let before = cluster.contents
    try suites.set("n", .integer(1), in: "app")
    suites.close()
    try first.saveSeen()
    cluster.forge(before)
    let again = try unlocked("first").suites(propertyLists: PropertyLists())
    defer { again.close() }
    expect(.damaged(what: "")) { _ = try again.read("app") }
  }

  @Test func aRestoredSnapshotIsAcceptedByAPerson() throws {
    let first = try create()
    let suites = first.suites(propertyLists: PropertyLists())
    _ = try suites.create("app")
    let revision = cluster.revision
    try suites.set("n", .integer(1), in: "app")
    suites.close()
    try first.saveSeen()
    cluster.restore(revision: revision)
    let one = try secret("p-first")
    let again = try open("first")
    expect(.readOnly(reason: "")) { try again.unlock(one) }
    let wrong = try secret("wrong")
    expect(.rejected) { try again.accept(wrong) }
    try again.accept(one)
    let reader = again.suites(propertyLists: PropertyLists())
    defer { reader.close() }
    #expect(try reader.read("app")?.settings.isEmpty == true)
    try reader.set("n", .integer(2), in: "app")
    _ = try unlocked("first")
  }

  /// Both stores save at the same time, as a store that was opened again does while the one before still saves.
  @Test func twoStoresOfOneDeviceSaveWhatTheyHaveSeen() async throws {
    let stores = [try create(), try unlocked("first")]
    try await withThrowingTaskGroup(of: Void.self) { group in
      for store in stores {
        group.addTask { for _ in 0..<300 { try store.saveSeen() } }
      }
      try await group.waitForAll()
    }
    _ = try unlocked("first")
  }

  @Test func anotherStoreIsNotAccepted() throws {
    let first = try create()
    let forged = MemoryCluster()
    // A list of members that begins otherwise, with a slot for this device.
    let paths = try ClusterPaths(store: "team")
    let store = first.session.keys.store
    let (master, member) = (SymmetricKey(size: .bits256), try #require(first.members().first))
    let other = try MemberSecret.random()
    var log = MemberLog(store: store)
    let identity = try StoreIdentity.of(master, store)
    for keys in [try other.publicKeys(), member] {
      let entry = try log.next(.add(keys), epoch: 1, identity: identity, by: other)
      forged.put(paths.log(log.count), entry)
      try log.append(entry)
    }
    forged.put(paths.slot(first.device), try MemberSlot.seal(master, to: member, store, epoch: 1))
    let tricked = try ClusterStore(MemoryCluster.Client(forged), store: "team", files: files("first"))
    let one = try secret("p-first")
    expect(.damaged(what: "")) { try tricked.accept(one) }
  }

  @Test func sightsTellOfWithheldAndForkedStates() throws {
    let first = try create()
    let second = try join("second", first)
    let (suites, others) = (
      first.suites(propertyLists: PropertyLists()), second.suites(propertyLists: PropertyLists())
    )
    defer {
      suites.close()
      others.close()
    }
    // The second device as it is now, once more: it has seen none of what follows.
    try folder.copy("second.device", to: "copy.device")
    try folder.copy("second.seen", to: "copy.seen")
    _ = try suites.create("app")
    let before = cluster.contents
    try suites.set("n", .integer(1), in: "app")
    try first.publishSight(suites, nil)
    _ = try others.read("app")
    #expect(try second.compareSights(others, nil).isEmpty)
    let sight = cluster.contents.filter { String(decoding: $0.key, as: UTF8.self).contains("/seen/") }
    #expect(sight.count == 1)
    // The servers show the second device the state before, and let it go on from there.
    let forked = MemoryCluster()
    forked.forge(before + sight)
    forked.setRevision(cluster.revision)
    let fresh = try ClusterStore(MemoryCluster.Client(forked), store: "team", files: files("copy"))
    let two = try secret("p-second")
    try fresh.unlock(two)
    let fork = fresh.suites(propertyLists: PropertyLists())
    defer { fork.close() }
    #expect(try fork.value("n", in: "app") == nil)
    #expect(try fresh.compareSights(fork, nil).map(\.comparison) == [.isWithheld])
    try fork.set("n", .integer(2), in: "app")
    #expect(try fresh.compareSights(fork, nil).map(\.comparison) == [.isForked])
  }
}
