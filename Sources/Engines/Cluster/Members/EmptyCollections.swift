import ClusterRecords
package import EtcdClient
package import Model
import VaultRecords

extension ClusterSession {
  /// The keys that have to be there before the engines can be used: the heads of the two lists without entries.
  package func emptyCollections() throws(StoreError) -> (
    conditions: [KeyCondition], operations: [KeyOperation]
  ) {
    var (conditions, operations): ([KeyCondition], [KeyOperation]) = ([], [])
    var head = CollectionHead()
    head.chain = CommitChain()
    for place in [paths.names, paths.items] {
      let sealed = try RecordSeal.seal(
        head.encoded, at: RecordPlace(.head, place.head, version: 1), for: place.purpose, keys)
      conditions.append(.created(key: place.head, equals: 0))
      operations.append(.put(key: place.head, value: sealed, lease: 0))
    }
    return (conditions, operations)
  }
}
