import Synchronization

/// A cluster of etcd, version 3.4 and later: gRPC over HTTP/2 by libcurl.
///
/// A call runs on the thread of its caller, over a connection that no other call uses meanwhile. The servers are asked in turn,
/// those that failed last. What was sent and may have changed something is never repeated.
package final class EtcdCluster: KeyValueCluster {
  /// Where the cluster is, and how it is used.
  package struct Configuration: Sendable {
    /// Not empty.
    package var endpoints: [EtcdEndpoint]
    package var security: TransportSecurity?
    package var login: EtcdLogin?
    /// The longest time of a call.
    package var deadline: Duration = .seconds(5)
    /// The mark of the cluster that was seen before, by another process too; nil: none was.
    package var seen: ClusterMark?
    /// A watch that gets nothing for so long asks the server for its progress.
    package var watchSilence: Duration = .seconds(15)
    /// The most bytes of a request: etcd's `--max-request-bytes`.
    package var largestRequest = 1_572_864
    /// The most bytes of a reply that are taken.
    package var largestReply = 256 << 20

    package init(endpoints: [EtcdEndpoint]) {
      self.endpoints = endpoints
    }
  }

  /// etcd's `--max-txn-ops`: of the conditions, and of each list of operations.
  package static let mostOperations = 128

  let configuration: Configuration
  package var deadline: Duration { configuration.deadline }

  let pool: ChannelPool
  let health: Mutex<EndpointHealth>
  private let identity: Mutex<ClusterIdentity>
  private let heard = Mutex<ContinuousClock.Instant?>(nil)
  private let running = Mutex<[ObjectIdentifier: CallInterruption]>([:])
  private let watches = Mutex<[ObjectIdentifier: EtcdWatch]>([:])

  /// Connects with the first call. It begins with any of the servers, so that many clients don't all use the same one.
  package init(_ configuration: Configuration) {
    self.configuration = configuration
    let count = configuration.endpoints.count
    pool = ChannelPool(servers: count)
    health = Mutex(EndpointHealth(count: count, first: Int.random(in: 0..<max(1, count))))
    identity = Mutex(ClusterIdentity(configuration.seen))
  }

  /// The cluster and the highest revision that were seen; nil: no reply was seen yet. For a client to remember.
  package var mark: ClusterMark? { identity.withLock { $0.mark } }

  /// Ends all watches, and interrupts all calls that run.
  package func close() {
    for interruption in running.withLock({ Array($0.values) }) { interruption.interrupt() }
    for watch in watches.withLock({ Array($0.values) }) { watch.cancel() }
    for server in configuration.endpoints.indices { pool.drop(server) }
  }
}

// MARK: - Calls

extension EtcdCluster {
  package func read(_ request: RangeRequest) throws(ClusterError) -> RangeReply {
    try read(request, interruption: CallInterruption())
  }

  package func read(
    _ request: RangeRequest, interruption: CallInterruption
  ) throws(ClusterError) -> RangeReply {
    let seen = mark
    let call = EtcdCall(
      method: .range, message: request.wire.bytes, needsLeader: request.isLinearizable)
    return try decoding(call, interruption) { (bytes) throws(WireError) in
      try RangeReply(WireReader(bytes))
    } check: { (reply) throws(ClusterError) in
      try verify(reply.header, notBefore: request.isLinearizable ? seen : nil)
    }
  }

  package func commit(_ transaction: ClusterTransaction) throws(ClusterError) -> TransactionReply {
    try commit(transaction, interruption: CallInterruption())
  }

  package func commit(
    _ transaction: ClusterTransaction, interruption: CallInterruption
  ) throws(ClusterError) -> TransactionReply {
    guard transaction.longestList <= Self.mostOperations else {
      throw .tooLarge("a transaction has at most \(Self.mostOperations) operations")
    }
    let seen = mark
    let call = EtcdCall(
      method: .transaction, message: transaction.wire.bytes, isChange: transaction.isChange)
    return try decoding(call, interruption) { (bytes) throws(WireError) in
      try TransactionReply(bytes)
    } check: { (reply) throws(ClusterError) in
      try verify(reply.header, notBefore: seen)
    }
  }

  /// Removes what keys were before a revision: reads and watches from before it are `compacted` then.
  package func compact(before revision: Int64) throws(ClusterError) {
    var writer = WireWriter()
    writer.signed(1, revision)
    let call = EtcdCall(method: .compact, message: writer.bytes, isChange: true)
    _ = try perform(call, CallInterruption())
  }

  /// Calls, and reads the reply.
  func decoding<Reply>(
    _ call: EtcdCall, _ interruption: CallInterruption, _ decode: ([UInt8]) throws(WireError) -> Reply,
    check: (Reply) throws(ClusterError) -> Void
  ) throws(ClusterError) -> Reply {
    let bytes = try perform(call, interruption)
    let reply: Reply
    do throws(WireError) { reply = try decode(bytes) } catch {
      let text = "the reply is malformed"
      throw call.isChange ? .outcomeUnknown(text) : .unavailable(text)
    }
    try check(reply)
    hear()
    return reply
  }

  /// Compares a header with what was seen. `seen`: what had been seen before the call, if the reply can't be older.
  ///
  /// - Throws: `wrongCluster`.
  func verify(_ header: ClusterHeader, notBefore seen: ClusterMark?) throws(ClusterError) {
    let result = identity.withLock { identity in
      Result { () throws(ClusterError) in try identity.take(header, notBefore: seen) }
    }
    try result.get()
  }

  /// A call was answered, or a watch. The status of a server does not count: it needs no right.
  func hear() { heard.withLock { $0 = .now } }

  /// When a reply came last; nil: none came.
  package var lastReply: ContinuousClock.Instant? { heard.withLock { $0 } }

  func remember(_ interruption: CallInterruption) {
    running.withLock { $0[ObjectIdentifier(interruption)] = interruption }
  }

  func forget(_ interruption: CallInterruption) {
    _ = running.withLock { $0.removeValue(forKey: ObjectIdentifier(interruption)) }
  }
}

// MARK: - Watches

extension EtcdCluster {
  /// `revision` 0: from the present one on. `connected` is reported for the first connection too.
  package func watch(
    _ range: KeyRange, from revision: Int64, report: @escaping @Sendable (WatchReport) -> Void
  ) -> any ClusterWatch {
    let watch = EtcdWatch(self, range, from: revision, report: report)
    watches.withLock { $0[ObjectIdentifier(watch)] = watch }
    watch.start { [self] in
      _ = watches.withLock { $0.removeValue(forKey: ObjectIdentifier(watch)) }
    }
    return watch
  }

  /// The servers at which watches are, for tests.
  var watchedServers: [Int] { watches.withLock { $0.values.compactMap(\.server) } }

  /// Has the watches on a server that did not answer find out whether it still does.
  func suspect(_ server: Int) {
    for watch in watches.withLock({ Array($0.values) }) { watch.suspect(server) }
  }
}
