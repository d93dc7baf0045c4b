import Cluster
import ClusterInMemory
import ClusterRecords
import Crypto
import EtcdClient
import Model
import Store
import Suites
import VaultRecords

/// A store in a cluster in memory, and clients of it.
final class TestStore: Sendable {
  let cluster = MemoryCluster()
  let paths: ClusterPaths
  let id = ItemKey.random()
  private let master = SymmetricKey(size: .bits256)
  private let index = SymmetricKey(size: .bits256)

  init() throws {
    paths = try ClusterPaths(store: "team")
    let session = try self.session(MemoryCluster.Client(cluster))
    let empty = try session.emptyCollections()
    _ = try session.cluster.commit(ClusterTransaction(empty.operations, if: empty.conditions))
  }

  func keys() throws -> ClusterKeyring {
    let keys = ClusterKeyring(store: id)
    try keys.add(master, epoch: 1)
    try keys.setRing(KeyRing(index: index, oldest: 1))
    return keys
  }

  func session(_ client: MemoryCluster.Client, seen: SeenState = SeenState()) throws -> ClusterSession {
    ClusterSession(client, paths, try keys(), device: .random(), seen: seen)
  }

  /// Suites of a client of its own.
  func suites(
    _ client: MemoryCluster.Client? = nil, seen: SeenState = SeenState(),
    changed: @escaping @Sendable (ExactString) -> Void = { _ in }
  ) throws -> ClusterSuites {
    ClusterSuites(
      try session(client ?? MemoryCluster.Client(cluster), seen: seen), propertyLists: PropertyLists(),
      changed: changed)
  }

  /// A keychain of a client of its own.
  func keychain(
    _ client: MemoryCluster.Client? = nil, seen: SeenState = SeenState()
  ) throws -> ClusterKeychain {
    ClusterKeychain(try session(client ?? MemoryCluster.Client(cluster), seen: seen))
  }
}
