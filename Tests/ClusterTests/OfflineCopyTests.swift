import Cluster
import ClusterInMemory
import ClusterRecords
import EtcdClient
import Model
import SecretMemory
import Store
import StoreConformance
import Suites
import Testing
import VaultRecords

/// Secrets that are opened while the cluster does not answer, from the copy on the device.
@Suite(.timeLimit(.minutes(2))) struct OfflineCopyTests {
  private let devices: TestDevices
  private let first: ClusterStore
  private let writer: ClusterKeychain

  init() throws {
    devices = try TestDevices()
    first = try devices.create()
    writer = first.keychain()
    writer.keep(.standard)
  }

  private let away = ClusterError.unavailable("away")

  @Test func secretsOpenWhileTheClusterIsAway() throws {
    let id = try writer.add(KeychainSamples.generic("a"), "one").id
    let client = devices.client()
    let (store, keychain) = try devices.open("first", client, days: 7)
    defer {
      writer.close()
      keychain.close()
    }
    #expect(try keychain.items().count == 1)
    store.updateOffline()
    #expect(keychain.isStale == false)
    client.setAway(away)
    #expect(try keychain.bytes(of: id) == Array("one".utf8))
    #expect(keychain.isStale == true)
    #expect(try keychain.items().count == 1)
    #expect(store.session.offline?.report.condition == .used)
    // Nothing can be changed.
    expect(.unreachable(reason: "")) { _ = try keychain.add(KeychainSamples.generic("b"), "two") }
    expect(.unreachable(reason: "")) { try keychain.set(id, Array("two".utf8)) }
    expect(.unreachable(reason: "")) { try keychain.remove([id]) }
    expect(.unreachable(reason: "")) { _ = try keychain.update([id]) { $0.label = "x" } }
    try writer.set(id, Array("two".utf8))
    client.setAway(nil)
    #expect(try keychain.bytes(of: id) == Array("two".utf8))
    #expect(keychain.isStale == false)
    #expect(store.session.offline?.report.condition == .kept)
  }

  @Test func aProcessThatBeginsWithoutTheClusterOpensTheCopy() throws {
    let id = try writer.add(KeychainSamples.generic("a"), "one").id
    let (store, before) = try devices.open("first", days: 7)
    #expect(try before.items().count == 1)
    store.updateOffline()
    before.close()
    let client = devices.client()
    client.setAway(away)
    let later = try ClusterStore(client, store: "team", files: devices.files("first"), offlineDays: 7)
    let wrong = try KeychainSamples.secret("wrong")
    expect(.rejected) { try later.unlock(wrong) }
    let right = try devices.passphrase("first")
    try later.unlock(right)
    #expect(later.isOffline)
    let keychain = later.keychain()
    defer {
      writer.close()
      keychain.close()
    }
    #expect(try keychain.items().map(\.identity) == [KeychainSamples.generic("a").identity])
    #expect(try keychain.bytes(of: id) == Array("one".utf8))
    #expect(keychain.isStale == true)
    expect(.unreachable(reason: "")) { try keychain.set(id, Array("two".utf8)) }
    try writer.set(id, Array("two".utf8))
    client.setAway(nil)
    try later.connect()
    #expect(!later.isOffline)
    #expect(try keychain.bytes(of: id) == Array("two".utf8))
    #expect(keychain.isStale == false)
    try keychain.set(id, Array("three".utf8))
    #expect(try writer.bytes(of: id) == Array("three".utf8))
  }

  @Test func nothingIsKeptWhereItWasNotAskedFor() throws {
    let id = try writer.add(KeychainSamples.generic("a"), "one").id
    let client = devices.client()
    let (store, keychain) = try devices.open("first", client)
    defer {
      writer.close()
      keychain.close()
    }
    #expect(try keychain.bytes(of: id) == Array("one".utf8))
    store.updateOffline()
    try store.saveSeen(durably: true)
    #expect(!devices.hasCopy("first"))
    client.setAway(away)
    expect(.unreachable(reason: "")) { _ = try keychain.secret(of: id) }
    let later = try ClusterStore(client, store: "team", files: devices.files("first"))
    let right = try devices.passphrase("first")
    expect(.unreachable(reason: "")) { try later.unlock(right) }
  }

  @Test(arguments: [-8 * 86_400, 3_600] as [Int64])
  func aCopyOfAnotherTimeIsNotUsed(seconds: Int64) throws {
    let id = try writer.add(KeychainSamples.generic("a"), "one").id
    let (store, before) = try devices.open("first", days: 7)
    #expect(try before.bytes(of: id) == Array("one".utf8))
    store.updateOffline()
    before.close()
    writer.close()
    let client = devices.client()
    client.setAway(away)
    let right = try devices.passphrase("first")
    let open = { try ClusterStore(client, store: "team", files: devices.files("first"), offlineDays: 7) }
    try devices.replace("first") { $0.time.seconds -= 6 * 86_400 }
    try open().unlock(right)
    try devices.replace("first") { $0.time = Timestamp(seconds: Timestamp.now.seconds + seconds) }
    let later = try open()
    expect(.unreachable(reason: "")) { try later.unlock(right) }
    #expect(later.session.offline?.report.condition == .expired)
    #expect(!devices.hasCopy("first"), "it is removed")
  }

  @Test func aLockTakesTheSecretsOfItsClassFromTheCopyToo() throws {
    let id = try writer.add(KeychainSamples.generic("a"), "one").id
    var lasting = KeychainSamples.generic("b")
    lasting.accessibility = .afterFirstUnlock
    let other = try writer.add(lasting, "two").id
    let client = devices.client()
    let (store, keychain) = try devices.open("first", client, days: 7)
    defer {
      writer.close()
      keychain.close()
    }
    #expect(try keychain.items().count == 2)
    store.updateOffline()
    client.setAway(away)
    try keychain.locking.lock()
    expect(.locked) { _ = try keychain.secret(of: id) }
    #expect(try keychain.bytes(of: other) == Array("two".utf8))
    let right = try devices.passphrase("first")
    try store.unlock(right)
    #expect(try keychain.bytes(of: id) == Array("one".utf8))
  }

  /// No name, no value, and nothing of removed and replaced secrets.
  @Test func theCopyHasWhatTheItemsHaveNowAndNothingInClear() throws {
    let kept = try writer.add(KeychainSamples.generic("conspicuous-service"), "conspicuous-value")
    let removed = try writer.add(KeychainSamples.generic("b"), "gone")
    try writer.set(kept.id, Array("conspicuous-value-2".utf8))
    let (store, keychain) = try devices.open("first", days: 7)
    defer {
      writer.close()
      keychain.close()
    }
    #expect(try keychain.items().count == 2)
    store.updateOffline()
    #expect(try devices.record("first").secrets.count == 2)
    let sealed = try devices.record("first").secrets
    try writer.remove([removed.id])
    try writer.set(kept.id, Array("conspicuous-value-3".utf8))
    #expect(try keychain.items().count == 1)
    store.updateOffline()
    let record = try devices.record("first")
    #expect(record.secrets.count == 1)
    #expect(sealed.keys.allSatisfy { record.secrets[$0] == nil })
    let bytes = String(decoding: try devices.copy("first"), as: UTF8.self)
    #expect(!bytes.contains("conspicuous"))
    // An earlier value is not in the copy.
    let version = try #require(try keychain.versions(of: kept.identity).first)
    #expect(try keychain.bytes(of: version.item.id) == Array("conspicuous-value".utf8))
  }

  @Test func earlierValuesNeedTheCluster() throws {
    let item = try writer.add(KeychainSamples.generic("a"), "one")
    try writer.set(item.id, Array("two".utf8))
    let client = devices.client()
    let (store, keychain) = try devices.open("first", client, days: 7)
    defer {
      writer.close()
      keychain.close()
    }
    let version = try #require(try keychain.versions(of: item.identity).first)
    store.updateOffline()
    client.setAway(away)
    #expect(try keychain.bytes(of: item.id) == Array("two".utf8))
    expect(.unreachable(reason: "")) { _ = try keychain.secret(of: version.item.id) }
    #expect(try keychain.versions(of: item.identity).count == 1)
  }

  /// A secret that was replaced is not given any more, also where the new one is not in the copy.
  @Test func aReplacedSecretIsNotGiven() throws {
    let id = try writer.add(KeychainSamples.generic("a"), "old").id
    let other = try writer.add(KeychainSamples.generic("b"), "other").id
    let client = devices.client()
    let (store, keychain) = try devices.open("first", client, days: 7)
    #expect(try keychain.items().count == 2)
    store.updateOffline()
    try writer.set(id, Array("new".utf8))
    #expect(try keychain.items().count == 2)
    client.setAway(away)
    // Stores the copy, then the file of what was seen.
    try store.saveSeen()
    #expect(try devices.record("first").items.version == store.session.seen.contents.heads.values.max())
    let given = try? keychain.bytes(of: id)
    #expect(given == nil || given == Array("new".utf8))
    keychain.close()
    writer.close()
    let (later, again) = try devices.open("first", client, days: 7)
    defer { again.close() }
    #expect(later.isOffline)
    #expect(try again.bytes(of: other) == Array("other".utf8))
    let still = try? again.bytes(of: id)
    #expect(still == nil || still == Array("new".utf8))
  }

  @Test func theCopyFollowsNewKeys() throws {
    let id = try writer.add(KeychainSamples.generic("a"), "one").id
    let client = devices.client()
    let (store, keychain) = try devices.open("first", client, days: 7)
    #expect(try keychain.bytes(of: id) == Array("one".utf8))
    store.updateOffline()
    let suites = first.suites(propertyLists: PropertyLists())
    let right = try devices.passphrase("first")
    try first.rotate(right, suites: suites, keychain: writer)
    suites.close()
    #expect(try keychain.bytes(of: id) == Array("one".utf8))
    store.updateOffline()
    #expect(try devices.record("first").items.epoch == 2)
    keychain.close()
    writer.close()
    client.setAway(away)
    let (_, later) = try devices.open("first", client, days: 7)
    defer { later.close() }
    #expect(try later.bytes(of: id) == Array("one".utf8))
  }

  @Test func aCopyIsRemovedWhereTheStateToBeginWithIsAnother() throws {
    let id = try writer.add(KeychainSamples.generic("a"), "one").id
    let (store, keychain) = try devices.open("first", days: 7)
    defer {
      writer.close()
      keychain.close()
    }
    #expect(try keychain.bytes(of: id) == Array("one".utf8))
    store.updateOffline()
    #expect(devices.hasCopy("first"))
    let right = try devices.passphrase("first")
    try first.accept(right)
    #expect(!devices.hasCopy("first"))
  }

  /// A mount that begins without the cluster is not held up by it: what is locked says so at once.
  @Test func beforeTheFirstUnlockTheClusterIsNotAsked() throws {
    defer { writer.close() }
    let client = devices.client()
    let store = try ClusterStore(client, store: "team", files: devices.files("first"), offlineDays: 7)
    let (suites, keychain) = (store.suites(propertyLists: PropertyLists()), store.keychain())
    defer {
      suites.close()
      keychain.close()
    }
    expect(.locked) { _ = try suites.suites() }
    expect(.locked) { _ = try keychain.items() }
    #expect(client.calls == 0)
  }

  /// Random changes and outages: while the cluster is away, all secrets are those of before.
  @Test func theCopyIsAlwaysTheStateOfBefore() throws {
    let client = devices.client()
    var (store, keychain) = try devices.open("first", client, days: 7)
    var model: [ItemID: [UInt8]] = [:]
    for round in 0..<30 {
      for step in 0..<Int.random(in: 0...3) {
        let value = "\(round) \(step)"
        if let known = model.keys.randomElement(), Bool.random() {
          if Bool.random() {
            try writer.set(known, Array(value.utf8))
            model[known] = Array(value.utf8)
          } else {
            try writer.remove([known])
            model[known] = nil
          }
        } else {
          model[try writer.add(KeychainSamples.generic("s", ExactString(value)), value).id] = Array(
            value.utf8)
        }
      }
      #expect(try keychain.items().count == model.count)
      store.updateOffline()
      client.setAway(away)
      if Bool.random() {
        keychain.close()
        (store, keychain) = try devices.open("first", client, days: 7)
        #expect(store.isOffline)
      }
      for (id, value) in model { #expect(try keychain.bytes(of: id) == value) }
      client.setAway(nil)
      if store.isOffline { try store.connect() }
    }
    keychain.close()
    writer.close()
  }
}
