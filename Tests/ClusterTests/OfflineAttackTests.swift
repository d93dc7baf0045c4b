import Cluster
import ClusterInMemory
import ClusterRecords
import EtcdClient
import Foundation
import Model
import SecretMemory
import Store
import StoreConformance
import Suites
import Testing
import VaultRecords

/// Files of copies that were swapped, changed or put back, while the cluster does not answer.
@Suite(.timeLimit(.minutes(2))) struct OfflineAttackTests {
  private let devices: TestDevices
  private let first: ClusterStore
  private let writer: ClusterKeychain
  private let id: ItemID
  private let away = ClusterError.unavailable("away")

  init() throws {
    devices = try TestDevices()
    first = try devices.create()
    writer = first.keychain()
    id = try writer.add(KeychainSamples.generic("a"), "one").id
  }

  /// Has a device store its copy.
  private func keep(_ name: String = "first") throws {
    let (store, keychain) = try devices.open(name, days: 7)
    #expect(try keychain.items().count == 1)
    store.updateOffline()
    try store.saveSeen(durably: true)
    keychain.close()
  }

  /// The device opens nothing while the cluster does not answer, and says why; and opens all when it answers again.
  private func refuses(_ reason: String, _ name: String = "first", isRemoved: Bool = false) throws {
    let client = devices.client()
    client.setAway(away)
    let store = try ClusterStore(client, store: "team", files: devices.files(name), offlineDays: 7)
    let passphrase = try devices.passphrase(name)
    var refusal: StoreError?
    do throws(StoreError) { try store.unlock(passphrase) } catch { refusal = error }
    #expect(
      refusal?.isNoAnswer == true && refusal?.message.contains(reason) == true,
      "\(String(describing: refusal))")
    #expect(!store.session.keys.isOpen)
    client.setAway(nil)
    guard !isRemoved else { return }
    try store.unlock(passphrase)
    let keychain = store.keychain()
    defer { keychain.close() }
    #expect(try keychain.bytes(of: id) == writer.bytes(of: id))
    store.updateOffline()
    #expect(store.session.offline?.report.condition == .kept)
  }

  @Test func aCutOrChangedFileIsRefused() throws {
    defer { writer.close() }
    try keep()
    let bytes = try devices.copy("first")
    for damaged in [[], Array(bytes.prefix(100)), Array(bytes.dropLast()), bytes.map { $0 ^ 1 }] {
      try devices.write(damaged, "first")
      try refuses("the copy of the secrets on this device")
    }
  }

  @Test func anOlderFileIsRefused() throws {
    defer { writer.close() }
    try keep()
    let old = try devices.copy("first")
    try writer.set(id, Array("two".utf8))
    try keep()
    try devices.write(old, "first")
    try refuses("older than what this device has seen")
  }

  @Test func anOlderFileIsRefusedByAProcessThatWasUnlockedBefore() throws {
    defer { writer.close() }
    try keep()
    let old = try devices.copy("first")
    try writer.set(id, Array("two".utf8))
    try keep()
    let client = devices.client()
    let (store, keychain) = try devices.open("first", client, days: 7)
    defer { keychain.close() }
    try devices.write(old, "first")
    client.setAway(away)
    expect(.unreachable(reason: "")) { _ = try keychain.secret(of: id) }
    #expect(store.session.offline?.report.condition == .refused)
  }

  @Test func theFileOfAnotherDeviceIsRefused() throws {
    defer { writer.close() }
    try devices.join("second", first)
    try keep()
    try keep("second")
    try devices.write(devices.copy("second"), "first")
    try refuses("the copy of the secrets on this device")
  }

  /// A device that was removed has no copy once it knows, and opens none that is put back.
  @Test func aRemovedDeviceOpensNoCopyThatIsPutBack() throws {
    defer { writer.close() }
    try devices.join("second", first)
    try keep("second")
    let old = try devices.copy("second")
    let two = try devices.passphrase("second")
    let store = try ClusterStore(
      devices.client(), store: "team", files: devices.files("second"), offlineDays: 7)
    let suites = first.suites(propertyLists: PropertyLists())
    defer { suites.close() }
    let one = try devices.passphrase("first")
    try first.rotate(removing: [store.device], one, suites: suites, keychain: writer)
    expect(.notPermitted(reason: "")) { try store.unlock(two) }
    #expect(!devices.hasCopy("second"))
    try devices.write(old, "second")
    try refuses("the copy of its secrets on this device is not used", "second", isRemoved: true)
  }

  /// The same for a mount that goes on.
  @Test func aDeviceThatIsRemovedWhileItIsOpenHasNoCopyAnyMore() throws {
    defer { writer.close() }
    try devices.join("second", first)
    let client = devices.client()
    let (store, keychain) = try devices.open("second", client, days: 7)
    defer { keychain.close() }
    #expect(try keychain.bytes(of: id) == Array("one".utf8))
    store.updateOffline()
    #expect(devices.hasCopy("second"))
    let suites = first.suites(propertyLists: PropertyLists())
    defer { suites.close() }
    let one = try devices.passphrase("first")
    try first.rotate(removing: [store.device], one, suites: suites, keychain: writer)
    #expect(throws: StoreError.self) { _ = try keychain.secret(of: id) }
    #expect(!devices.hasCopy("second"))
    client.setAway(away)
    #expect(throws: StoreError.self) { _ = try keychain.secret(of: id) }
  }

  /// Another process of the device, which has seen less, does not make the device forget what was seen.
  @Test func aProcessThatHasSeenLessForgetsNothing() throws {
    defer { writer.close() }
    try devices.join("second", first)
    try keep("second")
    let old = try devices.copy("second")
    let (idle, other) = try devices.open("second")
    defer { other.close() }
    try writer.set(id, Array("two".utf8))
    try keep("second")
    try idle.saveSeen(durably: true)
    try devices.write(old, "second")
    try refuses("older than what this device has seen", "second")
  }

  /// Without the file of what was seen there is nothing to compare with.
  @Test func withoutWhatWasSeenNothingIsOpened() throws {
    defer { writer.close() }
    try devices.join("second", first)
    try keep("second")
    try FileManager.default.removeItem(atPath: devices.files("second").seen)
    let client = devices.client()
    client.setAway(away)
    let store = try ClusterStore(client, store: "team", files: devices.files("second"), offlineDays: 7)
    let passphrase = try devices.passphrase("second")
    expect(.notPermitted(reason: "")) { try store.unlock(passphrase) }
  }

  /// A cluster that answers is never replaced by the copy: what it shows instead is refused as always.
  @Test func aClusterThatWasSetBackIsRefusedAndTheCopyToo() throws {
    defer { writer.close() }
    let revision = devices.cluster.revision
    try writer.set(id, Array("two".utf8))
    let client = devices.client()
    let (store, keychain) = try devices.open("first", client, days: 7)
    defer { keychain.close() }
    #expect(try keychain.bytes(of: id) == Array("two".utf8))
    store.updateOffline()
    devices.cluster.restore(revision: revision)
    expect(.unreachable(reason: "")) { _ = try keychain.secret(of: id) }
    client.setAway(away)
    #expect(throws: StoreError.self) { _ = try keychain.secret(of: id) }
  }
}
