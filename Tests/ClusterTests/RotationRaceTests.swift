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

/// Two devices make new keys at once, and earlier keys are put back.
@Suite(.timeLimit(.minutes(2))) struct RotationRaceTests {
  private let devices: TestDevices
  private let paths: ClusterPaths

  init() throws {
    devices = try TestDevices()
    paths = try ClusterPaths(store: "team")
  }

  /// Runs `body` with the engines of a store.
  private func with(_ store: ClusterStore, _ body: (ClusterSuites, ClusterKeychain) throws -> Void) rethrows {
    let (suites, keychain) = (store.suites(propertyLists: PropertyLists()), store.keychain())
    defer {
      suites.close()
      keychain.close()
    }
    try body(suites, keychain)
  }

  /// A store of two devices with a setting. - Returns: the first one's.
  @discardableResult private func makeSuite() throws -> ClusterStore {
    let first = try devices.create()
    try devices.join("second", first)
    try with(first) { suites, _ in
      _ = try suites.create("app")
      try suites.set("key", .string("one"), in: "app")
    }
    return first
  }

  private func expectReadable(by name: String) throws {
    try with(devices.unlocked(name)) { suites, _ in
      let value = try suites.value("key", in: "app")
      #expect(value == .string("one"))
    }
  }

  /// The device that is overtaken does not replace the ring, which alone has the keys of all that is not sealed again.
  @Test func anOvertakenRotationLeavesTheLaterKeys() throws {
    let first = try makeSuite()
    try with(first) { suites, keychain in
      let one = try devices.passphrase("first")
      let two = try devices.passphrase("second")
      try first.beginRotation(one)
      // The other device begins, and ends before anything is sealed again.
      try devices.unlocked("second").beginRotation(two)
      let ring = try #require(devices.cluster.value(paths.ring))
      expect(.notPermitted(reason: "")) { try first.finishRotation(suites: suites, keychain: keychain) }
      #expect(devices.cluster.value(paths.ring) == ring)
    }
    try expectReadable(by: "first")
    let second = try devices.unlocked("second")
    #expect(second.isRotating)
    try with(second) { try second.finishRotation(suites: $0, keychain: $1) }
    #expect(!second.isRotating)
    try expectReadable(by: "first")
    try expectReadable(by: "second")
  }

  /// Records that were sealed under keys which became earlier ones meanwhile are sealed again.
  @Test func aRotationThatFetchesLaterKeysSealsAllAgain() throws {
    try makeSuite()
    let client = HookedCluster(devices.cluster)
    let first = try ClusterStore(client, store: "team", files: devices.files("first"))
    let one = try devices.passphrase("first")
    try first.unlock(one)
    try with(first) { suites, keychain in
      try first.beginRotation(one)
      let items = paths.items.head
      let devices = devices
      let hasRotated = Flag()
      // The other device makes new keys when all suites were sealed again, and this one fetches them.
      client.setHook { transaction, _ in
        guard transaction.puts(items), hasRotated.isFirst() else { return }
        do {
          let two = try devices.passphrase("second")
          try devices.unlocked("second").beginRotation(two)
          try first.renew()
        } catch { Issue.record(error) }
      }
      try first.finishRotation(suites: suites, keychain: keychain)
      #expect(!hasRotated.isFirst() && !first.isRotating)
    }
    try expectReadable(by: "first")
    try expectReadable(by: "second")
  }

  /// The ring of the middle of a rotation would have the keys of before taken again, which a removed device has.
  @Test func anEarlierRingIsRefused() throws {
    let first = try devices.create()
    let one = try devices.passphrase("first")
    try first.beginRotation(one)
    let middle = try #require(devices.cluster.value(paths.ring))
    try with(first) { try first.finishRotation(suites: $0, keychain: $1) }
    #expect(try devices.unlocked("first").isRotating == false)
    devices.cluster.delete(paths.ring)
    for _ in 1..<middle.version { devices.cluster.put(paths.ring, Array("x".utf8)) }
    devices.cluster.put(paths.ring, middle.value)
    #expect(try #require(devices.cluster.value(paths.ring)).version == middle.version)
    expect(.damaged(what: "")) { _ = try devices.unlocked("first") }
  }
}

/// Whether something has happened before.
private final class Flag: Sendable {
  private let isSet = Atomic(false)

  /// True for the first call.
  func isFirst() -> Bool { !isSet.exchange(true, ordering: .relaxed) }
}
