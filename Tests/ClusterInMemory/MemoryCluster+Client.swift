package import EtcdClient
import Synchronization

extension MemoryCluster {
  /// One client's way to the cluster, with faults of its own.
  package final class Client: KeyValueCluster {
    /// The result of a commit that changes something.
    package enum Fault: Sendable {
      /// No reply, and it was done.
      case unknownDone
      /// No reply, and it was not done.
      case unknownNotDone
      /// No reply, and it is done with the next call of this client.
      case unknownDoneLater
      case fails(ClusterError)
      /// Nothing.
      case none
    }

    private struct Faults {
      var isAway: ClusterError?
      var commits: [Fault] = []
      var late: ClusterTransaction?
      var watches: [MemoryWatch] = []
      var isHeld = false
      var calls = 0
    }

    private let cluster: MemoryCluster
    private let faults = Mutex(Faults())
    package let deadline = Duration.seconds(5)

    package init(_ cluster: MemoryCluster) { self.cluster = cluster }

    /// How often the cluster was asked for something.
    package var calls: Int { faults.withLock { $0.calls } }

    /// Every call fails with the error; nil: no more. Watches report it.
    package func setAway(_ error: ClusterError?) {
      let watches = faults.withLock { faults in
        faults.isAway = error
        return faults.watches
      }
      for watch in watches {
        if let error {
          watch.send(.disconnected(error))
          watch.hold()
        } else {
          watch.release()
          watch.send(.connected)
        }
      }
    }

    /// Sets the results of the next commits, in their order.
    package func inject(_ faults: Fault...) { self.faults.withLock { $0.commits += faults } }

    /// The same, for the one after the next commit.
    package func injectAfterNext(_ fault: Fault) { inject(.none, fault) }

    /// Keeps reports of watches back until `releaseWatches`.
    package func holdWatches() {
      for watch in faults.withLock({ faults in
        faults.isHeld = true
        return faults.watches
      }) { watch.hold() }
    }

    package func releaseWatches() {
      for watch in faults.withLock({ faults in
        faults.isHeld = false
        return faults.watches
      }) { watch.release() }
    }

    /// Returns when all reports so far were delivered.
    package func settle() {
      for watch in faults.withLock({ $0.watches }) { watch.settle() }
    }

    package func read(_ request: RangeRequest) throws(ClusterError) -> RangeReply {
      try begin()
      return try cluster.use { (state) throws(ClusterError) in try cluster.read(request, state) }
    }

    package func commit(_ transaction: ClusterTransaction) throws(ClusterError) -> TransactionReply {
      try begin()
      guard let fault = transaction.changes ? takeFault() : nil else { return try run(transaction) }
      switch fault {
      case .none: return try run(transaction)
      case .fails(let error): throw error
      case .unknownDone: _ = try run(transaction)
      case .unknownNotDone: break
      case .unknownDoneLater: faults.withLock { $0.late = transaction }
      }
      throw .outcomeUnknown("no reply")
    }

    package func watch(
      _ range: KeyRange, from revision: Int64, report: @escaping @Sendable (WatchReport) -> Void
    ) -> any ClusterWatch {
      let watch = cluster.watch(range, from: revision, report: report)
      let isHeld = faults.withLock { faults in
        faults.watches.append(watch)
        return faults.isHeld
      }
      if isHeld { watch.hold() }
      return watch
    }

    private func run(_ transaction: ClusterTransaction) throws(ClusterError) -> TransactionReply {
      try cluster.use { (state) throws(ClusterError) in try cluster.commit(transaction, &state) }
    }

    private func takeFault() -> Fault? {
      faults.withLock { $0.commits.isEmpty ? nil : $0.commits.removeFirst() }
    }

    private func begin() throws(ClusterError) {
      let (error, late) = faults.withLock { faults in
        faults.calls += 1
        defer { faults.late = nil }
        return (faults.isAway, faults.late)
      }
      if let late { _ = try run(late) }
      if let error { throw error }
    }
  }

  func use<Result>(_ body: (inout State) throws(ClusterError) -> Result) throws(ClusterError) -> Result {
    try state.withLock { (state) throws(ClusterError) in try body(&state) }
  }
}

extension ClusterTransaction {
  fileprivate var changes: Bool {
    operations.contains { if case .read = $0 { false } else { true } }
  }
}
