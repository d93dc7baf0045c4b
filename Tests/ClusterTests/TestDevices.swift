import Cluster
import ClusterInMemory
import ClusterRecords
import EtcdClient
import Foundation
import Model
import SecretMemory
import Store
import StoreConformance
import Testing
import VaultRecords

/// Devices of one store, each with files of its own, in a cluster in memory.
final class TestDevices: Sendable {
  let folder: TemporaryFolder
  let cluster = MemoryCluster()

  init() throws { folder = try TemporaryFolder() }

  func client() -> MemoryCluster.Client { MemoryCluster.Client(cluster) }

  func files(_ name: String) -> DeviceFiles { folder.files(name) }

  func passphrase(_ name: String) throws -> SecretBytes { try KeychainSamples.secret("p-\(name)") }

  /// Makes the store, of which the device `first` is the first member.
  @discardableResult func create(_ name: String = "first") throws -> ClusterStore {
    try ClusterStore.create(
      client(), store: "team", files: files(name), passphrase: try passphrase(name), cost: .least)
  }

  /// Has a device ask to belong to the store. Returns the code that it shows.
  func request(_ name: String) throws -> String {
    try ClusterStore.requestJoining(
      client(), store: "team", files: files(name), passphrase: try passphrase(name), cost: .least)
  }

  /// The store as a device has it, not unlocked.
  func locked(_ name: String) throws -> ClusterStore {
    try ClusterStore(client(), store: "team", files: files(name))
  }

  /// The same, unlocked.
  func unlocked(_ name: String) throws -> ClusterStore {
    let store = try locked(name)
    let passphrase = try passphrase(name)
    try store.unlock(passphrase)
    return store
  }

  /// A device that belongs to the store from now on, unlocked.
  func joined(_ name: String, _ first: ClusterStore) throws -> ClusterStore {
    try join(name, first)
    return try unlocked(name)
  }

  /// A device that belongs to the store from now on.
  func join(_ name: String, _ first: ClusterStore) throws {
    let code = try request(name)
    let joining = try #require(try first.requests().first)
    let answer = try first.code(of: joining)
    let one = try passphrase("first")
    let two = try passphrase(name)
    try first.approve(joining.device.id, code: code, one)
    try locked(name).confirm(code: answer, two)
  }

  /// A process of a device, unlocked. `days`: it keeps a copy of the keychain.
  func open(
    _ name: String, _ client: MemoryCluster.Client? = nil, days: Int? = nil
  ) throws -> (store: ClusterStore, keychain: ClusterKeychain) {
    let store = try ClusterStore(
      client ?? self.client(), store: "team", files: files(name), offlineDays: days)
    let passphrase = try passphrase(name)
    try store.unlock(passphrase)
    return (store, store.keychain())
  }
}

// MARK: - The copy of a device

extension TestDevices {
  /// The content of the file of the copy. - Throws: `damaged`.
  func record(_ name: String) throws -> OfflineRecord {
    let (member, store) = try member(name)
    let bytes = [UInt8](try Data(contentsOf: URL(fileURLWithPath: files(name).offline)))
    return try OfflineRecord(opening: bytes, OfflineRecord.key(member, store), of: store, member.id)
  }

  /// Replaces the file of the copy, as a device's own process could.
  func replace(_ name: String, _ body: (inout OfflineRecord) -> Void) throws {
    var record = try record(name)
    body(&record)
    let (member, store) = try member(name)
    try write(record.sealed(OfflineRecord.key(member, store), of: store, member.id), name)
  }

  func write(_ bytes: [UInt8], _ name: String) throws {
    let url = URL(fileURLWithPath: files(name).offline)
    try Data(bytes).write(to: url)
    try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: url.path)
  }

  func copy(_ name: String) throws -> [UInt8] {
    [UInt8](try Data(contentsOf: URL(fileURLWithPath: files(name).offline)))
  }

  func hasCopy(_ name: String) -> Bool { FileManager.default.fileExists(atPath: files(name).offline) }

  private func member(_ name: String) throws -> (MemberSecret, ItemKey) {
    let bytes = [UInt8](try Data(contentsOf: URL(fileURLWithPath: files(name).device)))
    let device = try DeviceRecord(bytes.span)
    let passphrase = try passphrase(name)
    return (try device.open(passphrase), device.store)
  }
}
