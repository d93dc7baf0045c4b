package import ClusterRecords
package import EtcdClient
package import Model
import Platform
import Synchronization
package import VaultRecords

/// The parts that the engines of a store share: the way to the cluster, the store's keys, and what this device has seen.
package final class ClusterSession: Sendable {
  package let cluster: any KeyValueCluster
  package let paths: ClusterPaths
  package let keys: ClusterKeyring
  package let seen: SeenState
  /// This device, as a member of the store.
  package let device: ItemKey
  /// nil: this device keeps no copy of the keychain.
  package let offline: OfflineCopy?
  let limits = CallLimits()
  let pruning = PruningClock()
  /// When a call was answered last; nil: none was.
  let answered = Mutex<ContinuousClock.Instant?>(nil)
  /// A call is under way that only asks whether the cluster answers.
  let isAsking = Atomic(false)
  private let refused = Mutex(Refusals())
  private let membership = Atomic(true)
  private let keysAt = Atomic<Int64>(0)
  private let renewal = Locked<(@Sendable () -> Bool)?>(nil)
  private let observer = Locked<(@Sendable () -> Void)?>(nil)

  /// The collections that could not be read when that was tried last, by the keys of their heads, and why.
  private let unreadable = Mutex<[[UInt8]: StoreError]>([:])

  /// A collection is gone.
  func forget(_ head: [UInt8]) {
    seen.forget(head)
    noteReading(of: head, nil)
  }

  func noteReading(of head: [UInt8], _ failure: StoreError?) { unreadable.withLock { $0[head] = failure } }

  /// Why a collection could not be read when that was tried last, though servers may answer; nil: all could.
  package var readingFailure: StoreError? {
    unreadable.withLock { $0.values.first { if case .unreachable = $0 { true } else { false } } }
  }

  /// The last refusal of each kind of call, where none succeeded since.
  private struct Refusals {
    var reading: ClusterError?
    var changing: ClusterError?
  }

  package init(
    _ cluster: any KeyValueCluster, _ paths: ClusterPaths, _ keys: ClusterKeyring, device: ItemKey,
    seen: SeenState, offline: OfflineCopy? = nil
  ) {
    (self.cluster, self.paths, self.keys, self.seen) = (cluster, paths, keys, seen)
    self.device = device
    self.offline = offline
  }

  /// From now on `renew` is called where a record is sealed under keys that are not known: it fetches them, if it can.
  func setRenewal(_ renew: @escaping @Sendable () -> Bool) { renewal.use { $0 = renew } }

  /// Whether keys were fetched, so that what was `locked` may be tried again.
  func renewKeys() -> Bool { renewal.use { $0 }?() ?? false }

  /// From now on `look` is called when the list of members or the store's keys have changed, on a thread that must not wait.
  package func setMembersObserver(_ look: @escaping @Sendable () -> Void) { observer.use { $0 = look } }

  /// Another device has changed the members, or made new keys: where it has taken this one away, its copy of the keychain goes now, and not
  /// with the next call.
  func lookAtMembers() {
    if let look = observer.use({ $0 }) { return look() }
    guard offline != nil else { return }
    Background.run { [self] in _ = renewKeys() }
  }

  /// How many keys are read at once.
  private static let page: Int64 = 5_000

  /// A transaction whose reply is from this store's cluster, and not behind what was seen before it was sent.
  func commit(_ transaction: ClusterTransaction) throws(ClusterError) -> TransactionReply {
    try checked(isChange: transaction.isChange) { (interruption) throws(ClusterError) in
      try cluster.commit(transaction, interruption: interruption)
    } header: {
      $0.header
    }
  }

  /// A reading whose reply is from this store's cluster, and not behind what was seen before it was sent.
  private func ask(_ request: RangeRequest) throws(ClusterError) -> RangeReply {
    try checked(isChange: false) { (interruption) throws(ClusterError) in
      try cluster.read(request, interruption: interruption)
    } header: {
      $0.header
    }
  }

  private func checked<Reply>(
    isChange: Bool, _ call: (CallInterruption) throws(ClusterError) -> Reply,
    header: (Reply) -> ClusterHeader
  ) throws(ClusterError) -> Reply {
    let least = seen.revision
    let interruption = try interruption()
    let reply: Reply
    do throws(ClusterError) { reply = try call(interruption) } catch {
      switch error {
      case .noSpace, .unauthorized: note(error, isChange)
      default: break
      }
      throw error
    }
    note(nil, isChange)
    limits.noteAnswer()
    answered.withLock { $0 = .now }
    try seen.check(header(reply), least: least)
    return reply
  }

  private func note(_ refusal: ClusterError?, _ isChange: Bool) {
    refused.withLock { refused in
      if isChange { refused.changing = refusal } else { refused.reading = refusal }
    }
  }

  /// Why the last change, or the last reading, was refused: the quota is used up, or the user has no right to it; nil: neither was.
  package var refusal: ClusterError? { refused.withLock { $0.reading ?? $0.changing } }

  /// Whether this device is a member of the store, by the list of members that was read last.
  package var isMember: Bool { membership.load(ordering: .relaxed) }

  /// The revision at which the list of members and the keys were read last.
  var keysRevision: Int64 { keysAt.load(ordering: .relaxed) }

  func noteKeys(at revision: Int64) { _ = keysAt.max(revision, ordering: .relaxed) }

  func noteMembership(_ isMember: Bool) { membership.store(isMember, ordering: .relaxed) }

  /// A reply has other parts than the request, or keys that were not asked for.
  private static let malformed = ClusterError.unavailable("the reply is malformed")

  /// Key ranges at one revision, linearizably: several in one transaction. Of each as many keys as there are, and the revision.
  func read(_ ranges: [KeyRange]) throws(ClusterError) -> (values: [[KeyValue]], revision: Int64) {
    let requests = ranges.map { range in
      var request = RangeRequest(range)
      if range.end != nil { request.limit = Self.page }
      return request
    }
    var values: [[KeyValue]]
    let revision: Int64
    if let request = requests.first, requests.count == 1 {
      let reply = try ask(request)
      (values, revision) = ([reply.values], reply.header.revision)
    } else {
      let reply = try commit(ClusterTransaction(requests.map { .read($0) }))
      (values, revision) = (reply.values, reply.header.revision)
    }
    guard values.count == ranges.count, zip(ranges, values).allSatisfy({ $0.0.contains($0.1) }) else {
      throw Self.malformed
    }
    for index in ranges.indices {
      while let end = ranges[index].end, let last = values[index].last,
        values[index].count.isMultiple(of: Int(Self.page))
      {
        var request = RangeRequest(KeyRange(start: last.key + [0], end: end))
        (request.revision, request.limit) = (revision, Self.page)
        let more = try cluster.read(request, interruption: try interruption())
        guard !more.values.isEmpty else { break }
        guard ranges[index].contains(more.values) else { throw Self.malformed }
        values[index] += more.values
      }
    }
    return (values, revision)
  }
}
