import Dispatch
import EtcdClient
import Synchronization

/// A watch of a `MemoryCluster`: its reports come on a queue of its own, in their order.
package final class MemoryWatch: ClusterWatch {
  private struct State {
    var isCancelled = false
    var isHeld = false
    var held: [WatchReport] = []
    var hidden: Set<[UInt8]> = []
  }

  private let range: KeyRange
  private let from: Int64
  private let report: @Sendable (WatchReport) -> Void
  private let state = Mutex(State())
  private let queue = DispatchQueue(label: "memory.watch")
  private static let own = DispatchSpecificKey<ObjectIdentifier>()

  init(_ range: KeyRange, from: Int64, _ report: @escaping @Sendable (WatchReport) -> Void) {
    (self.range, self.from, self.report) = (range, from, report)
    queue.setSpecific(key: Self.own, value: ObjectIdentifier(self))
  }

  var isCancelled: Bool { state.withLock { $0.isCancelled } }

  package func cancel() {
    state.withLock { $0.isCancelled = true }
    // A report may be under way.
    if DispatchQueue.getSpecific(key: Self.own) != ObjectIdentifier(self) { queue.sync {} }
  }

  func send(_ changes: [KeyChange], _ revision: Int64) {
    guard revision >= from else { return }
    let hidden = state.withLock { $0.hidden }
    let seen = changes.filter { range.contains($0.key) && !hidden.contains($0.key) }
    if !seen.isEmpty { send(.changes(seen, revision: revision)) }
  }

  func send(_ new: WatchReport) {
    let isHeld = state.withLock { state in
      if state.isHeld { state.held.append(new) }
      return state.isHeld
    }
    if !isHeld { deliver(new) }
  }

  /// Leaves changes of a key out of the reports.
  func hide(_ key: [UInt8]) { state.withLock { _ = $0.hidden.insert(key) } }

  /// Keeps reports back until `release`.
  func hold() { state.withLock { $0.isHeld = true } }

  /// Reports that are kept back are never delivered.
  func drop() { state.withLock { $0.held = [] } }

  func release() {
    let held = state.withLock { state in
      state.isHeld = false
      defer { state.held = [] }
      return state.held
    }
    for report in held { deliver(report) }
  }

  private func deliver(_ new: WatchReport) {
    queue.async { [self] in
      if !isCancelled { report(new) }
    }
  }

  /// Returns when all reports so far were delivered.
  func settle() { queue.sync {} }
}

extension KeyRange {
  func contains(_ key: [UInt8]) -> Bool {
    guard let end else { return key == start }
    return !key.lexicographicallyPrecedes(start) && key.lexicographicallyPrecedes(end)
  }
}

extension KeyChange {
  /// The key that was changed.
  var key: [UInt8] {
    switch self {
    case .put(let value): value.key
    case .delete(let key, _): key
    }
  }
}
