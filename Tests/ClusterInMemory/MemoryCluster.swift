import EtcdClient
import Synchronization

/// A `KeyValueCluster` in memory, that does what etcd's API v3 says: revisions, versions, transactions, watches, compaction.
///
/// Clients share it by `MemoryCluster.Client`, of which each can fail by itself. The contents can be edited as a cluster's
/// operator could edit them.
package final class MemoryCluster: Sendable {
  struct State {
    var revision: Int64 = 1
    var oldest: Int64 = 1
    var cluster: UInt64 = 0xC1
    /// The values of each key, by the revision that made them so; nil: it was deleted.
    var history: [[UInt8]: [(revision: Int64, value: KeyValue?)]] = [:]
    /// The changes of each revision.
    var changes: [(revision: Int64, changes: [KeyChange])] = []
    var watches: [MemoryWatch] = []
    var quotaIsUsedUp = false
  }

  let state = Mutex(State())

  package init() {}

  /// The most operations of a transaction, and the most bytes of a request.
  static let mostOperations = 128
  static let largestRequest = 1_572_864

  func read(_ request: RangeRequest, _ state: State) throws(ClusterError) -> RangeReply {
    let revision = request.revision == 0 ? state.revision : request.revision
    guard revision >= state.oldest else { throw .compacted(oldest: state.oldest) }
    guard revision <= state.revision else { throw .refused("mvcc: required revision is a future revision") }
    var values = state.values(request.range, at: revision)
    let count = Int64(values.count)
    if request.limit > 0 { values = Array(values.prefix(Int(request.limit))) }
    if request.isKeysOnly {
      for index in values.indices { values[index].value = [] }
    }
    return RangeReply(
      header: state.header, values: values, hasMore: Int64(values.count) < count, count: count)
  }

  func commit(_ transaction: ClusterTransaction, _ state: inout State) throws(ClusterError)
    -> TransactionReply
  {
    try Self.check(transaction)
    let holds = transaction.conditions.allSatisfy { state.holds($0) }
    let operations = holds ? transaction.operations : transaction.otherwise
    let writes = operations.contains { if case .put = $0 { true } else { false } }
    if writes, state.quotaIsUsedUp { throw .noSpace }
    let next = state.revision + 1
    var (changes, values): ([KeyChange], [[KeyValue]]) = ([], [])
    for operation in operations {
      switch operation {
      case .put(let key, let value, _):
        values.append([])
        changes.append(.put(state.put(key, value, next)))
      case .delete(let range):
        values.append([])
        for present in state.values(range, at: next) {
          state.history[present.key, default: []].append((next, nil))
          changes.append(.delete(key: present.key, modified: next))
        }
      case .read(let request):
        values.append(try read(request, state.at(changes.isEmpty ? state.revision : next)).values)
      }
    }
    state.finish(next, changes)
    return TransactionReply(header: state.header, didSucceed: holds, values: values)
  }

  private static func check(_ transaction: ClusterTransaction) throws(ClusterError) {
    let counts = [transaction.conditions.count, transaction.operations.count, transaction.otherwise.count]
    guard counts.allSatisfy({ $0 <= mostOperations }) else {
      throw .tooLarge("etcdserver: too many operations in txn request")
    }
    let size = (transaction.operations + transaction.otherwise).reduce(0) { sum, operation in
      if case .put(let key, let value, _) = operation { sum + key.count + value.count + 16 } else { sum + 64 }
    }
    guard size + transaction.conditions.count * 96 <= largestRequest else {
      throw .tooLarge("etcdserver: request is too large")
    }
    let puts = transaction.operations.compactMap { operation in
      if case .put(let key, _, _) = operation { key } else { nil }
    }
    guard Set(puts).count == puts.count else {
      throw .refused("etcdserver: duplicate key given in txn request")
    }
  }

  func watch(
    _ range: KeyRange, from revision: Int64, report: @escaping @Sendable (WatchReport) -> Void
  ) -> MemoryWatch {
    state.withLock { state in
      let watch = MemoryWatch(range, from: revision, report)
      if revision > 0, revision < state.oldest {
        watch.send(.compacted(revision: state.oldest))
        return watch
      }
      for (made, changes) in state.changes where made >= revision && revision > 0 {
        watch.send(changes, made)
      }
      state.watches.append(watch)
      return watch
    }
  }
}

extension MemoryCluster.State {
  var header: ClusterHeader { ClusterHeader(cluster: cluster, member: 1, revision: revision, term: 1) }

  /// The same state, which also shows what a transaction has done so far.
  func at(_ revision: Int64) -> Self {
    var state = self
    state.revision = revision
    return state
  }

  func value(_ key: [UInt8], at revision: Int64) -> KeyValue? {
    history[key]?.last { $0.revision <= revision }?.value
  }

  func values(_ range: KeyRange, at revision: Int64) -> [KeyValue] {
    guard let end = range.end else { return value(range.start, at: revision).map { [$0] } ?? [] }
    return history.keys.filter {
      !$0.lexicographicallyPrecedes(range.start) && $0.lexicographicallyPrecedes(end)
    }
    .sorted { $0.lexicographicallyPrecedes($1) }.compactMap { value($0, at: revision) }
  }

  func holds(_ condition: KeyCondition) -> Bool {
    switch condition {
    case .created(let key, let number): (value(key, at: revision)?.created ?? 0) == number
    case .modified(let key, let number): (value(key, at: revision)?.modified ?? 0) == number
    case .version(let key, let number): (value(key, at: revision)?.version ?? 0) == number
    case .value(let key, let bytes): value(key, at: revision)?.value == bytes
    }
  }

  mutating func put(_ key: [UInt8], _ value: [UInt8], _ next: Int64) -> KeyValue {
    let present = self.value(key, at: next)
    let new = KeyValue(
      key: key, value: value, created: present?.created ?? next, modified: next,
      version: (present?.version ?? 0) + 1)
    history[key, default: []].append((next, new))
    return new
  }

  mutating func finish(_ next: Int64, _ changes: [KeyChange]) {
    guard !changes.isEmpty else { return }
    revision = next
    self.changes.append((next, changes))
    watches.removeAll(where: \.isCancelled)
    for watch in watches { watch.send(changes, next) }
  }
}
