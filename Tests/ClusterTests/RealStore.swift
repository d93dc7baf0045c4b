import Cluster
import ClusterRecords
import Crypto
import EtcdClient
import EtcdHarness
import Model
import Store
import Suites
import VaultRecords

/// A store on three real servers, and clients of it.
final class RealStore: Sendable {
  let paths: ClusterPaths
  private let nodes: EtcdNodes
  private let id = ItemKey.random()
  private let master = SymmetricKey(size: .bits256)
  private let index = SymmetricKey(size: .bits256)

  /// `name`: each store of a cluster has another one.
  init(_ nodes: EtcdNodes, _ name: String) throws {
    self.nodes = nodes
    paths = try ClusterPaths(store: name)
    let session = try self.session(client())
    let empty = try session.emptyCollections()
    _ = try session.cluster.commit(ClusterTransaction(empty.operations, if: empty.conditions))
  }

  func client() -> EtcdCluster {
    EtcdCluster(
      EtcdCluster.Configuration(endpoints: nodes.endpoints.compactMap { EtcdEndpoint($0, isSecure: false) }))
  }

  func session(_ client: any KeyValueCluster, seen: SeenState = SeenState()) throws -> ClusterSession {
    let keys = ClusterKeyring(store: id)
    try keys.add(master, epoch: 1)
    try keys.setRing(KeyRing(index: index, oldest: 1))
    return ClusterSession(client, paths, keys, device: .random(), seen: seen)
  }

  func suites(
    _ client: (any KeyValueCluster)? = nil, seen: SeenState = SeenState(),
    changed: @escaping @Sendable (ExactString) -> Void = { _ in }
  ) throws -> ClusterSuites {
    ClusterSuites(
      try session(client ?? self.client(), seen: seen), propertyLists: PropertyLists(), changed: changed)
  }

  func keychain(_ client: (any KeyValueCluster)? = nil) throws -> ClusterKeychain {
    ClusterKeychain(try session(client ?? self.client()))
  }
}
