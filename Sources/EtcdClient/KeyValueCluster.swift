/// A cluster of key-value servers with revisions, transactions and watches, as etcd's API v3 has them.
///
/// Every call may come from any thread, and returns within ``deadline``. `EtcdClient` is one over the network; tests have
/// one in memory.
package protocol KeyValueCluster: Sendable {
  /// The longest time that a call takes: 5 s by default.
  var deadline: Duration { get }

  /// Keys and values of a range at one revision.
  ///
  /// - Throws: `unavailable`, `compacted`, `refused`.
  func read(_ request: RangeRequest) throws(ClusterError) -> RangeReply

  /// The same, which `interruption` ends with `unavailable`.
  func read(_ request: RangeRequest, interruption: CallInterruption) throws(ClusterError) -> RangeReply

  /// Compares and changes in one step, or only reads: at most 128 operations.
  ///
  /// - Throws: `outcomeUnknown` where the servers may have done it; `unavailable` where they certainly have not;
  ///   `noSpace`, `tooLarge`, `refused`.
  func commit(_ transaction: ClusterTransaction) throws(ClusterError) -> TransactionReply

  /// The same, which `interruption` ends: with `outcomeUnknown` where the change was sent.
  func commit(
    _ transaction: ClusterTransaction, interruption: CallInterruption
  ) throws(ClusterError) -> TransactionReply

  /// Reports the changes of a range from a revision on, in their order, until the watch is cancelled. It connects again by
  /// itself; what it can't report is said by `compacted`, after which nothing follows.
  ///
  /// `report` is called from one thread at a time, and must not block.
  func watch(
    _ range: KeyRange, from revision: Int64, report: @escaping @Sendable (WatchReport) -> Void
  ) -> any ClusterWatch
}

extension KeyValueCluster {
  // Of a cluster whose calls don't wait: nothing is to be interrupted.

  package func read(
    _ request: RangeRequest, interruption: CallInterruption
  ) throws(ClusterError) -> RangeReply {
    try read(request)
  }

  package func commit(
    _ transaction: ClusterTransaction, interruption: CallInterruption
  ) throws(ClusterError) -> TransactionReply {
    try commit(transaction)
  }
}

/// A watch that runs.
package protocol ClusterWatch: Sendable {
  /// Ends the watch: `report` is not called again after this returned. It waits for a call of `report` that runs, unless it is called
  /// in that: the caller must not hold a lock that `report` takes.
  func cancel()
}

/// The keys from `start` up to `end`, which is not among them; `end` nil: the one key `start`.
package struct KeyRange: Hashable, Sendable {
  package var start: [UInt8]
  package var end: [UInt8]?

  /// One key.
  package init(key: [UInt8]) { start = key }

  package init(start: [UInt8], end: [UInt8]) {
    self.start = start
    self.end = end
  }

  /// Every key that begins with `prefix`, which is not empty and has a byte below 0xFF.
  package init(prefix: [UInt8]) {
    start = prefix
    var end = prefix
    while let last = end.popLast() {
      if last < 0xFF {
        end.append(last + 1)
        break
      }
    }
    self.end = end
  }
}

extension KeyRange {
  /// Whether all keys are in the range.
  package func contains(_ values: [KeyValue]) -> Bool {
    values.allSatisfy { value in
      guard let end else { return value.key == start }
      return !value.key.lexicographicallyPrecedes(start) && value.key.lexicographicallyPrecedes(end)
    }
  }
}

package struct RangeRequest: Sendable {
  package var range: KeyRange
  /// Answered by a majority of the servers; else by one of them, which may lag behind.
  package var isLinearizable = true
  /// The revision to read; 0: the present one.
  package var revision: Int64 = 0
  /// At most so many keys, in their order; 0: all.
  package var limit: Int64 = 0
  package var isKeysOnly = false

  package init(_ range: KeyRange, isLinearizable: Bool = true) {
    self.range = range
    self.isLinearizable = isLinearizable
  }
}

/// A key with its value at one revision.
package struct KeyValue: Hashable, Sendable {
  package var key: [UInt8]
  package var value: [UInt8]
  /// The revision that created the key since it was last absent.
  package var created: Int64
  /// The revision of its last change.
  package var modified: Int64
  /// How often it was changed since it was created, from 1.
  package var version: Int64

  package init(key: [UInt8], value: [UInt8], created: Int64, modified: Int64, version: Int64) {
    self.key = key
    self.value = value
    self.created = created
    self.modified = modified
    self.version = version
  }
}

/// The cluster and its state, as every reply says them.
package struct ClusterHeader: Hashable, Sendable {
  package var cluster: UInt64
  package var member: UInt64
  package var revision: Int64
  package var term: UInt64

  package init(cluster: UInt64, member: UInt64, revision: Int64, term: UInt64) {
    self.cluster = cluster
    self.member = member
    self.revision = revision
    self.term = term
  }
}

package struct RangeReply: Sendable {
  package var header: ClusterHeader
  package var values: [KeyValue]
  /// There are keys behind `limit`.
  package var hasMore: Bool
  /// The keys of the range, those behind `limit` included.
  package var count: Int64

  package init(header: ClusterHeader, values: [KeyValue], hasMore: Bool, count: Int64) {
    self.header = header
    self.values = values
    self.hasMore = hasMore
    self.count = count
  }
}

/// It must hold for a transaction to change something. `created` 0: the key is absent.
package enum KeyCondition: Sendable {
  case created(key: [UInt8], equals: Int64)
  case modified(key: [UInt8], equals: Int64)
  case version(key: [UInt8], equals: Int64)
  case value(key: [UInt8], equals: [UInt8])
}

package enum KeyOperation: Sendable {
  /// `lease` 0: none.
  case put(key: [UInt8], value: [UInt8], lease: Int64)
  case delete(KeyRange)
  case read(RangeRequest)
}

/// Where all conditions hold, `operations`, else `otherwise`, in one step.
package struct ClusterTransaction: Sendable {
  package var conditions: [KeyCondition]
  package var operations: [KeyOperation]
  package var otherwise: [KeyOperation]

  package init(
    _ operations: [KeyOperation], if conditions: [KeyCondition] = [], otherwise: [KeyOperation] = []
  ) {
    self.conditions = conditions
    self.operations = operations
    self.otherwise = otherwise
  }
}

package struct TransactionReply: Sendable {
  package var header: ClusterHeader
  /// The conditions held.
  package var didSucceed: Bool
  /// The replies of the operations that were done: of a `read` its values, of the others none.
  package var values: [[KeyValue]]

  package init(header: ClusterHeader, didSucceed: Bool, values: [[KeyValue]]) {
    self.header = header
    self.didSucceed = didSucceed
    self.values = values
  }
}

/// A change of one key.
package enum KeyChange: Hashable, Sendable {
  case put(KeyValue)
  /// `modified`: the revision that deleted it.
  case delete(key: [UInt8], modified: Int64)
}

package enum WatchReport: Sendable {
  /// All changes of one revision, of which none is missing and none was reported before.
  case changes([KeyChange], revision: Int64)
  /// Everything up to this revision has been reported.
  case progress(revision: Int64)
  /// The servers can't be reached, or have no leader; the watch goes on trying.
  case disconnected(ClusterError)
  /// The watch goes on from where it was. Also the first report of all, when a server has begun the watch.
  case connected
  /// The changes behind the revision that was asked for are not all kept any more: read everything, and watch from behind that.
  case compacted(revision: Int64)
  /// Another cluster answers, or one that was set back: nothing follows.
  case refused(ClusterError)
}

package enum ClusterError: Error, Hashable, Sendable {
  /// No server answered in time, or a majority is missing. What was asked for was not done.
  case unavailable(String)
  /// A change was sent, and no reply came: it may have been done.
  case outcomeUnknown(String)
  /// The revision is not kept any more; the oldest that is, or 0 where the reply does not say it.
  case compacted(oldest: Int64)
  /// The cluster's quota is used up (NOSPACE).
  case noSpace
  /// The request is larger than the servers take (1.5 MiB by default), or has more than 128 operations.
  case tooLarge(String)
  /// The servers refuse the user, the certificate or the token.
  case unauthorized(String)
  /// The replies come from another cluster, or from one that was set back behind a revision that was seen.
  case wrongCluster(String)
  /// Anything else that a server refuses, with its message.
  case refused(String)
}
