/// Values on their way to one taker: in order, one at a time, and only as many as it asked for.
///
/// Nothing is locked while the taker runs, so it may set the value that it is notified of; that comes after this one.
package final class Outlet<Value>: @unchecked Sendable {
  // The taker is called from one thread at a time; everything else is behind the lock.
  private let take: (Value) -> Int?
  private let state: Guarded<State>

  private struct State {
    var waiting: [Value] = []
    /// nil: without limit.
    var demand: Int?
    var isDraining = false
    var isClosed = false

    mutating func add(_ more: Int?) {
      guard let known = demand, let more else {
        demand = nil
        return
      }
      demand = known + more
    }
  }

  /// - Parameters:
  ///   - demand: how many values are wanted; nil: all.
  ///   - take: takes a value and returns how many more are wanted; nil: all.
  package init(demand: Int?, take: @escaping (Value) -> Int?) {
    self.take = take
    state = Guarded(State(demand: demand))
  }

  package func append(_ value: Value) {
    state.withLock { if !$0.isClosed { $0.waiting.append(value) } }
  }

  package func request(_ more: Int?) {
    state.withLock { $0.add(more) }
    drain()
  }

  package func close() {
    state.withLock { state in
      state.isClosed = true
      state.waiting = []
    }
  }

  /// Hands over what is wanted, unless another call is doing that already.
  package func drain() {
    guard begin() else { return }
    while let value = next() {
      let more = take(value)
      state.withLock { $0.add(more) }
    }
  }

  private func begin() -> Bool {
    state.withLock { state in
      defer { state.isDraining = true }
      return !state.isDraining
    }
  }

  private func next() -> Value? {
    state.withLock { state in
      guard !state.isClosed, state.demand != 0, !state.waiting.isEmpty else {
        state.isDraining = false
        return nil
      }
      if let demand = state.demand { state.demand = demand - 1 }
      return state.waiting.removeFirst()
    }
  }
}
