import ClusterInMemory
import ClusterRecords
import Dispatch
import EtcdClient
import Model
import SecretMemory
import Store
import StoreConformance
import Suites
import Testing
import VaultRecords

@testable import Cluster

/// Devices that make a store, join it, and are taken away.
@Suite(.timeLimit(.minutes(2))) struct ClusterStoreTests {
  private let devices: TestDevices

  init() throws { devices = try TestDevices() }

  @Test func aStoreIsOpenedByItsDeviceAndPassphraseOnly() throws {
    let suites = try devices.create().suites(propertyLists: PropertyLists())
    _ = try suites.create("app")
    suites.close()
    let wrong = try KeychainSamples.secret("wrong")
    let none = try SecretBytes()
    let store = try devices.locked("first")
    expect(.rejected) { try store.unlock(wrong) }
    expect(.locked) { try store.unlock(none) }
    let sealed = store.suites(propertyLists: PropertyLists())
    expect(.locked) { _ = try sealed.suites() }
    let right = try devices.passphrase("first")
    try store.unlock(right)
    #expect(try Array(sealed.suites().keys) == ["app"])
    sealed.close()
    // A store that was begun goes on, until there is a recovery code.
    #expect(try devices.create().device == store.device)
    _ = try store.makeRecoveryCode(right)
    expect(.exists) { _ = try devices.create() }
    expect(.notFound) { _ = try devices.locked("other") }
  }

  @Test func aLockTakesTheSecretsOfItsClass() throws {
    let store = try devices.create()
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
    let right = try devices.passphrase("first")
    try keychain.locking.unlock(right)
    #expect(try keychain.bytes(of: id) == Array("one".utf8))
  }

  @Test func aDeviceJoinsByACodeOnBothSides() throws {
    let first = try devices.create()
    let writer = first.suites(propertyLists: PropertyLists())
    defer { writer.close() }
    _ = try writer.create("app")
    let code = try devices.request("second")
    let joining = try #require(try first.requests().first)
    let answer = try first.code(of: joining)
    let one = try devices.passphrase("first")
    let two = try devices.passphrase("second")
    // Neither side goes on without the code and its passphrase.
    let other = try RecoveryCode.text(of: RecoveryCode.make())
    let wrong = String(decoding: other.unprotected, as: UTF8.self)
    expect(.rejected) { try first.approve(joining.device.id, code: wrong, one) }
    expect(.rejected) { try first.approve(joining.device.id, code: code, two) }
    // Nor by the code that it shows itself.
    expect(.rejected) { try first.approve(joining.device.id, code: answer, one) }
    let second = try devices.locked("second")
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

  /// Other devices that ask, and are approved first or never, do not stand in the way.
  @Test func requestsDoNotWaitForEachOther() throws {
    let first = try devices.create()
    let (two, three) = (try devices.request("second"), try devices.request("third"))
    let one = try devices.passphrase("first")
    func approve(_ name: String, _ code: String) throws {
      let id = try devices.locked(name).device
      let request = try #require(try first.requests().first { $0.device.id == id })
      let answer = try first.code(of: request)
      try first.approve(id, code: code, one)
      let passphrase = try devices.passphrase(name)
      try devices.locked(name).confirm(code: answer, passphrase)
      _ = try devices.unlocked(name)
    }
    try approve("third", three)
    try approve("second", two)
    #expect(try first.members().count == 3)
    // One that a rotation has overtaken has to ask again: a member that was removed could have shown it another list.
    let four = try devices.request("fourth")
    let (suites, keychain) = (first.suites(propertyLists: PropertyLists()), first.keychain())
    defer {
      suites.close()
      keychain.close()
    }
    try first.rotate(one, suites: suites, keychain: keychain)
    expect(.notPermitted(reason: "")) { try approve("fourth", four) }
    let passphrase = try devices.passphrase("fourth")
    let fresh = try #require(try devices.locked("fourth").renewRequest(passphrase))
    #expect(try devices.locked("fourth").renewRequest(passphrase) == fresh)
    try approve("fourth", fresh)
    #expect(try devices.locked("fourth").renewRequest(passphrase) == nil)
  }

  @Test func aMemberThatIsTakenAwayOpensNothingNew() throws {
    let first = try devices.create()
    let second = try devices.joined("second", first)
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
    let passphrase = try devices.passphrase("first")
    try first.rotate(removing: [second.device], passphrase, suites: suites, keychain: keychain)
    try keychain.set(id, Array("after".utf8))
    try suites.set("n", .integer(2), in: "app")
    #expect(try keychain.bytes(of: id) == Array("after".utf8))
    #expect(throws: StoreError.self) { _ = try items.secret(of: id) }
    #expect(throws: StoreError.self) { try reader.set("n", .integer(3), in: "app") }
    let two = try devices.passphrase("second")
    expect(.notPermitted(reason: "")) { try devices.locked("second").unlock(two) }
    // Those who stay open all that was there before.
    let again = try devices.unlocked("first")
    let (newSuites, newKeychain) = (again.suites(propertyLists: PropertyLists()), again.keychain())
    defer {
      newSuites.close()
      newKeychain.close()
    }
    #expect(try newSuites.value("n", in: "app") == .integer(2))
    #expect(try newKeychain.bytes(of: id) == Array("after".utf8))
    #expect(try again.members().count == 1)
  }

  /// Else one who writes to the cluster could keep the keys of a removed member in use.
  @Test func aRotationGoesOnBehindADamagedSuite() throws {
    let first = try devices.create()
    let second = try devices.joined("second", first)
    let suites = first.suites(propertyLists: PropertyLists())
    let keychain = first.keychain()
    defer {
      suites.close()
      keychain.close()
    }
    for name in ["app", "mean", "other"] as [ExactString] { _ = try suites.create(name) }
    for name in ["app", "other"] as [ExactString] { try suites.set("n", .integer(1), in: name) }
    let id = try keychain.add(KeychainSamples.generic("a"), "secret").id
    let before = Set(devices.cluster.contents.map(\.key))
    try suites.set("n", .integer(1), in: "mean")
    let entry = try #require(devices.cluster.contents.first { !before.contains($0.key) })
    let entries = entry.key.dropLast(32)
    devices.cluster.delete(entry.key)
    let passphrase = try devices.passphrase("first")
    expect(.notPermitted(reason: "")) {
      try first.rotate(removing: [second.device], passphrase, suites: suites, keychain: keychain)
    }
    #expect(try first.isRotating && !second.isRotating && second.members().count == 1)
    let epochs = devices.cluster.contents.filter {
      $0.key == first.session.paths.items.head || $0.key.starts(with: first.session.paths.items.entries)
    }.map { Array($0.value[1..<5]) }
    // Behind the byte for the format.
    #expect(epochs.count == 2 && epochs.allSatisfy { $0 == [0, 0, 0, 2] }, "\(epochs)")
    expect(.notPermitted(reason: "")) { try suites.discard("app") }
    try suites.discard("mean")
    #expect(try suites.suiteNames().sorted() == ["app", "other"] && suites.problems().isEmpty)
    #expect(!devices.cluster.contents.contains { $0.key.starts(with: entries) })
    try first.finishRotation(suites: suites, keychain: keychain)
    #expect(!first.isRotating)
    let again = try devices.unlocked("first")
    let (newSuites, newKeychain) = (again.suites(propertyLists: PropertyLists()), again.keychain())
    defer {
      newSuites.close()
      newKeychain.close()
    }
    #expect(try newSuites.value("n", in: "other") == .integer(1))
    #expect(try newKeychain.bytes(of: id) == Array("secret".utf8))
  }

  /// Another passphrase, and none, open the same keys; a store that is open takes it over, and not from a file with other keys.
  @Test func thePassphraseOfADeviceIsChanged() throws {
    let open = try devices.create()
    let path = devices.files("first").device
    let old = try devices.passphrase("first")
    let new = try KeychainSamples.secret("another")
    expect(.rejected) { try open.changePassphrase(new, to: old, cost: .least) }
    let none = try SecretBytes()
    expect(.locked) { try open.changePassphrase(none, to: new, cost: .least) }
    let before = try #require(try DeviceFiles.read(path))
    try devices.locked("first").changePassphrase(old, to: new, cost: .least)
    expect(.rejected) { try devices.locked("first").unlock(old) }
    try devices.locked("first").unlock(new)
    // It was opened before the change.
    open.lock()
    try open.unlock(new)
    expect(.rejected) { try open.unlock(old) }
    _ = try DeviceRecord(open.deviceRecord.span).open(new)
    // Keys of another program's, with this device's number.
    let foreign = try MemberSecret(id: open.device, KeychainSamples.secret(String(repeating: "x", count: 64)))
    let file = try DeviceRecord(
      foreign, of: open.keys.store, passphrase: try KeychainSamples.secret("theirs"), cost: .least)
    try DeviceFiles.replace(path, with: file.encoded, durably: false)
    expect(.rejected) { try open.unlock(try KeychainSamples.secret("theirs")) }
    #expect(try DeviceRecord(open.deviceRecord.span).encoded != file.encoded)
    open.lock()
    try open.unlock(new)
    try DeviceFiles.replace(path, with: before, durably: false)
    try devices.locked("first").changePassphrase(old, to: none)
    let without = try devices.locked("first")
    #expect(!without.needsPassphrase)
    try without.unlock(none)
    try open.unlock(none)
    #expect(!open.needsPassphrase)
  }

  /// The process that asks a person gets the keys sealed, or not at all.
  @Test func aQuestionHasNoKeysInTheClear() throws {
    let sealed = try devices.create()
    let passphrase = try devices.passphrase("first")
    _ = try DeviceRecord(sealed.deviceRecord.span).open(passphrase)
    let open = try ClusterStore.create(
      devices.client(), store: "open", files: devices.files("open"), passphrase: SecretBytes(), cost: .least)
    let record = try DeviceRecord(open.deviceRecord.span)
    #expect(!record.takesPassphrase && record.content.isEmpty)
  }

  /// The snapshot is of a time at which the second device still belonged to the store.
  @Test func aRestoredListOfMembersIsSaid() throws {
    let first = try devices.create()
    let second = try devices.joined("second", first)
    let suites = first.suites(propertyLists: PropertyLists())
    let keychain = first.keychain()
    let revision = devices.cluster.revision
    let one = try devices.passphrase("first")
    try first.rotate(removing: [second.device], one, suites: suites, keychain: keychain)
    suites.close()
    keychain.close()
    try first.saveSeen()
    devices.cluster.restore(revision: revision)
    // An entry that does not follow is no part of the list.
    devices.cluster.put(try ClusterPaths(store: "team").log(2), Array("garbage".utf8))
    let again = try devices.locked("first")
    #expect(try again.accept(one))
    #expect(try again.members().count == 2)
    #expect(try !devices.locked("first").accept(one))
    // An earlier list that has gone on otherwise since, and is as long.
    let after = try devices.unlocked("first")
    _ = try devices.joined("third", after)
    try after.saveSeen()
    devices.cluster.restore(revision: revision)
    #expect(try devices.locked("first").accept(one))
  }

  /// A mount learns of new members and keys by the watch that it has for items.
  @Test func changesOfMembersAreReported() throws {
    let first = try devices.create()
    let second = try devices.joined("second", first)
    let looks = DispatchSemaphore(value: 0)
    second.session.setMembersObserver { looks.signal() }
    let (suites, keychain) = (first.suites(propertyLists: PropertyLists()), first.keychain())
    let followed = second.keychain()
    defer {
      suites.close()
      keychain.close()
      followed.close()
    }
    #expect(try followed.items().isEmpty)
    let one = try devices.passphrase("first")
    try first.beginRotation(removing: [second.device], one)
    #expect(looks.wait(timeout: .now() + 60) == .success)
    try first.finishRotation(suites: suites, keychain: keychain)
    #expect(looks.wait(timeout: .now() + 60) == .success)
  }

  @Test func membersWhoStayFollowARotation() throws {
    let first = try devices.create()
    _ = try devices.joined("second", first)
    let way = devices.client()
    let second = try ClusterStore(way, store: "team", files: devices.files("second"))
    let two = try devices.passphrase("second")
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
    let passphrase = try devices.passphrase("first")
    try first.rotate(passphrase, suites: suites, keychain: keychain)
    try suites.set("n", .integer(2), in: "app")
    way.settle()
    #expect(try settings.presentSuite("app").fetch()?.entries["n"]?.value == .integer(2))
    try reader.set("m", .integer(1), in: "app")
    #expect(try reader.value("n", in: "app") == .integer(2))
    // Where a second has passed, the value after it is kept too.
    #expect(try reader.versions(of: "app").first?.value == .integer(0), "what was kept is sealed again")
  }

  @Test func aRecoveryCodeMakesADevice() throws {
    let first = try devices.create()
    let suites = first.suites(propertyLists: PropertyLists())
    defer { suites.close() }
    _ = try suites.create("app")
    let passphrase = try devices.passphrase("first")
    let code = try first.makeRecoveryCode(passphrase)
    let other = try RecoveryCode.make()
    #expect(throws: StoreError.rejected) {
      _ = try ClusterStore.recover(
        devices.client(), store: "team", files: devices.files("wrong"), code: other,
        passphrase: try KeychainSamples.secret("x"), cost: .least
      )
    }
    let third = try ClusterStore.recover(
      devices.client(), store: "team", files: devices.files("third"), code: code,
      passphrase: try devices.passphrase("third"),
      cost: .least)
    let reader = third.suites(propertyLists: PropertyLists())
    defer { reader.close() }
    #expect(try Array(reader.suites().keys) == ["app"])
    #expect(try first.members().count == 3)
  }

  @Test func aRestoredSnapshotIsAcceptedByAPerson() throws {
    let first = try devices.create()
    let suites = first.suites(propertyLists: PropertyLists())
    _ = try suites.create("app")
    let revision = devices.cluster.revision
    try suites.set("n", .integer(1), in: "app")
    suites.close()
    try first.saveSeen()
    devices.cluster.restore(revision: revision)
    let one = try devices.passphrase("first")
    let again = try devices.locked("first")
    expect(.readOnly(reason: "")) { try again.unlock(one) }
    let wrong = try KeychainSamples.secret("wrong")
    expect(.rejected) { try again.accept(wrong) }
    #expect(try !again.accept(one))
    let reader = again.suites(propertyLists: PropertyLists())
    defer { reader.close() }
    #expect(try reader.read("app")?.settings.isEmpty == true)
    try reader.set("n", .integer(2), in: "app")
    _ = try devices.unlocked("first")
  }

  /// Both stores save at the same time, as a store that was opened again does while the one before still saves.
  @Test func twoStoresOfOneDeviceSaveWhatTheyHaveSeen() async throws {
    let stores = [try devices.create(), try devices.unlocked("first")]
    try await withThrowingTaskGroup(of: Void.self) { group in
      for store in stores {
        group.addTask { for _ in 0..<300 { try store.saveSeen() } }
      }
      try await group.waitForAll()
    }
    _ = try devices.unlocked("first")
  }
}
