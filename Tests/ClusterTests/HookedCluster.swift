import ClusterInMemory
import EtcdClient
import Synchronization

/// A client of a cluster in memory that looks at its transactions, and may change their replies.
final class HookedCluster: KeyValueCluster {
  typealias Hook = @Sendable (ClusterTransaction, inout TransactionReply) -> Void

  private let inner: MemoryCluster.Client
  private let state = Mutex((hook: Hook?.none, watches: 0))

  init(_ cluster: MemoryCluster) { inner = MemoryCluster.Client(cluster) }

  /// Called after each transaction from now on; nil: nothing is.
  func setHook(_ hook: Hook?) { state.withLock { $0.hook = hook } }

  /// How many watches were begun.
  var watches: Int { state.withLock { $0.watches } }

  var deadline: Duration { inner.deadline }

  func read(_ request: RangeRequest) throws(ClusterError) -> RangeReply { try inner.read(request) }

  func commit(_ transaction: ClusterTransaction) throws(ClusterError) -> TransactionReply {
    var reply = try inner.commit(transaction)
    state.withLock { $0.hook }?(transaction, &reply)
    return reply
  }

  func watch(
    _ range: KeyRange, from revision: Int64, report: @escaping @Sendable (WatchReport) -> Void
  ) -> any ClusterWatch {
    state.withLock { $0.watches += 1 }
    return inner.watch(range, from: revision, report: report)
  }
}

extension ClusterTransaction {
  /// Whether it puts a key.
  func puts(_ key: [UInt8]) -> Bool {
    operations.contains { operation in
      if case .put(key, _, _) = operation { true } else { false }
    }
  }
}
