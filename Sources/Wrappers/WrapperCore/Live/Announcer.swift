import Observation
import Synchronization

/// Tells of the changes of one thing: code under Observation first, then listeners in the order in which they
/// came.
package final class Announcer: Sendable, Observable {
  private let registrar = ObservationRegistrar()
  private let state = Mutex(State())
  /// Made once: making one costs more than everything else of a read.
  private let path: any KeyPath<Announcer, Void> & Sendable = \Announcer.subject

  private struct State {
    var next = 0
    var listeners: [Int: @Sendable () -> Void] = [:]
  }

  private var subject: Void {}

  package init() {}

  /// Notes that the thing is read by code that may be observed.
  package func access() { registrar.access(self, keyPath: path) }

  /// Calls `look` after each change from now on, from whatever thread made or found it.
  package func listen(_ look: @escaping @Sendable () -> Void) -> Listening {
    let number = state.withLock { state in
      state.next += 1
      state.listeners[state.next] = look
      return state.next
    }
    return Listening { [weak self] in
      _ = self?.state.withLock { $0.listeners.removeValue(forKey: number) }
    }
  }

  /// Notifies all observers after the change: a reader that observes again in between has the new value already, so no
  /// change is missed.
  package func tell() {
    registrar.withMutation(of: self, keyPath: path) {}
    let listeners = state.withLock { $0.listeners }
    for (_, look) in listeners.sorted(by: { $0.key < $1.key }) { look() }
  }

  /// Hands every value from the present one on to an outlet, each once and in order.
  ///
  /// `current` gives the value now. Where it has the version of the one before, it is the same; so it is where its
  /// type finds the two equal.
  package func follow<Value>(
    _ outlet: Outlet<Value>, _ current: @escaping () -> (version: UInt64?, value: Value)
  ) -> Listening {
    let last = Guarded<(version: UInt64?, value: Value)?>(nil)
    let look = {
      let isNew = last.withLock { last in
        let now = current()
        if let last, last.version != nil, last.version == now.version { return false }
        defer { last = now }
        if let last, Values.areEqual(last.value, now.value) { return false }
        outlet.append(now.value)
        return true
      }
      if isNew { outlet.drain() }
    }
    let passed = Passed(value: look)
    let listening = listen { passed.value() }
    look()
    return listening
  }
}

/// Ends a listening when it is cancelled or dropped.
package final class Listening: Sendable {
  private let end: Mutex<(@Sendable () -> Void)?>

  package init(_ end: @escaping @Sendable () -> Void) {
    self.end = Mutex(end)
  }

  deinit { cancel() }

  package func cancel() {
    let end = end.withLock { end in
      defer { end = nil }
      return end
    }
    end?()
  }
}
