import Cluster
import EtcdClient
import EtcdHarness
import Model
import SecretMemory
import Store
import StoreConformance
import Testing
import VaultRecords

/// Secrets that are opened from a device's copy while real servers were killed, or have no majority.
@Suite(.timeLimit(.minutes(5))) struct RealOfflineTests {
  /// A call ends within five seconds, and the machine may be slow.
  private static let longest = Duration.seconds(12)

  @Test func secretsOpenWithoutServersAndWithoutAMajority() throws {
    let nodes = try EtcdNodes()
    let folder = try TemporaryFolder()
    let passphrase = try KeychainSamples.secret("p")
    let writing = try ClusterStore.create(
      nodes.client(), store: "team", files: folder.files("a"), passphrase: passphrase, cost: .least)
    let writer = writing.keychain()
    let id = try writer.add(KeychainSamples.generic("a"), "one").id
    let store = try ClusterStore(
      nodes.client(), store: "team", files: folder.files("a"), offlineDays: 7)
    try store.unlock(passphrase)
    let keychain = store.keychain()
    defer {
      keychain.close()
      writer.close()
    }
    #expect(try keychain.items().count == 1)
    store.updateOffline()

    for index in 0..<3 { nodes.kill(index) }
    try opens("one", id, keychain)
    expect(.unreachable(reason: "")) { _ = try keychain.add(KeychainSamples.generic("b"), "two") }
    // Another process, which begins without them.
    let later = try ClusterStore(
      nodes.client(), store: "team", files: folder.files("a"), offlineDays: 7)
    try later.unlock(passphrase)
    #expect(later.isOffline)
    let other = later.keychain()
    defer { other.close() }
    try opens("one", id, other)
    for index in 0..<3 { try nodes.start(index) }
    try nodes.waitUntilReady()
    #expect(holds { (try? later.connect()) != nil })
    #expect(holds { (try? writer.set(id, Array("two".utf8))) != nil })
    for engine in [keychain, other] {
      #expect(holds { (try? engine.bytes(of: id)) == Array("two".utf8) && engine.isStale == false })
      #expect(holds { (try? engine.set(id, Array("two".utf8))) != nil })
    }

    store.updateOffline()
    for index in 0..<2 { nodes.pause(index) }
    try opens("two", id, keychain)
    for index in 0..<2 { nodes.resume(index) }
    #expect(holds { (try? keychain.set(id, Array("three".utf8))) != nil })
    #expect(holds { (try? keychain.bytes(of: id)) == Array("three".utf8) && keychain.isStale == false })
  }

  private func opens(
    _ value: String, _ id: ItemID, _ keychain: ClusterKeychain,
    sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    for _ in 0..<3 {
      let start = ContinuousClock.now
      #expect(try keychain.bytes(of: id) == Array(value.utf8), sourceLocation: sourceLocation)
      #expect(start.duration(to: .now) < Self.longest, sourceLocation: sourceLocation)
    }
    #expect(keychain.isStale == true, sourceLocation: sourceLocation)
  }
}

extension RealOfflineTests {
  /// Whether a condition, which asks the servers, holds within a while.
  private func holds(_ condition: () -> Bool) -> Bool {
    let end = ContinuousClock.now + .seconds(60)
    while ContinuousClock.now < end { if condition() { return true } }
    return false
  }
}

extension EtcdNodes {
  fileprivate func client() -> EtcdCluster {
    EtcdCluster(
      EtcdCluster.Configuration(endpoints: endpoints.compactMap { EtcdEndpoint($0, isSecure: false) }))
  }
}
