@_spi(SwiftUI) import Observation
package import WrapperCore

/// Follows a property of an object through every wrapper's key and every `@Observable` property that it reads.
///
/// Observation says what a property reads while it is read, so this works for stored, wrapped and computed
/// properties alike. The standard library's public function tells only before a change; the one that SwiftUI
/// uses tells after it too, which is when a handler wants the new value.
package final class KeyPathFollower<Root: AnyObject, Value>: @unchecked Sendable {
  // Everything that changes is behind the lock; handlers are called by the outlet, one at a time.
  private let keyPath: KeyPath<Root, Value>
  private let outlet: Outlet<Change>
  private let tellsPrior: Bool
  private let state: Guarded<State>

  /// A value and the one before it; `isPrior`: it is about to change.
  package struct Change {
    package let old: Value
    package let new: Value
    package let isPrior: Bool
  }

  private struct State {
    weak var root: Root?
    var last: Value
    var tracking: ObservationTracking?
    var generation = 0
    var isOver = false
  }

  package init(
    _ root: Root, _ keyPath: KeyPath<Root, Value>, tellsPrior: Bool, outlet: Outlet<Change>
  ) {
    self.keyPath = keyPath
    self.outlet = outlet
    self.tellsPrior = tellsPrior
    state = Guarded(State(root: root, last: root[keyPath: keyPath]))
    look()
  }

  /// The value at the beginning.
  package var first: Value { state.withLock { $0.last } }

  package func cancel() {
    state.withLock { state in
      state.isOver = true
      state.tracking?.cancel()
      state.tracking = nil
    }
    outlet.close()
  }

  /// Reads the property and observes all that it reads now; what it read before may have been something else.
  private func look() {
    guard let (root, generation) = begin() else { return }
    let now = withObservationTracking {
      root[keyPath: keyPath]
    } willSet: { [weak self] _ in
      self?.willChange()
    } didSet: { [weak self] tracking in
      self?.didChange(tracking, generation)
    }
    if note(now) { outlet.drain() }
  }

  private func begin() -> (Root, Int)? {
    state.withLock { state in
      guard !state.isOver, let root = state.root else { return nil }
      state.generation += 1
      return (root, state.generation)
    }
  }

  /// A change that an earlier reading observed ends that one: there is a new one by then.
  private func didChange(_ tracking: ObservationTracking, _ generation: Int) {
    tracking.cancel()
    let isPresent = state.withLock { $0.generation == generation && !$0.isOver }
    if isPresent { look() }
  }

  private func willChange() {
    guard tellsPrior else { return }
    state.withLock { state in
      guard !state.isOver else { return }
      outlet.append(Change(old: state.last, new: state.last, isPrior: true))
    }
    outlet.drain()
  }

  private func note(_ now: Value) -> Bool {
    state.withLock { state in
      defer { state.last = now }
      guard !state.isOver, !Values.areEqual(state.last, now) else { return false }
      outlet.append(Change(old: state.last, new: now, isPrior: false))
      return true
    }
  }
}
