package import Model
import Observation
import Store
import Synchronization

/// One key of a suite. All wrappers of that key in this process share it, so that they agree and hear of each
/// other.
package final class LiveKey: Sendable, Observable {
  /// The suite owns its keys; who uses a key holds the suite too.
  unowned let suite: LiveSuite
  package let name: ExactString
  private let registrar = ObservationRegistrar()
  private let state = Mutex(State())
  private let registrations = Atomic<UInt64>(0)
  /// Made once: making one costs more than everything else of a read.
  private let path: any KeyPath<LiveKey, Stored> & Sendable = \LiveKey.stored

  /// What the store holds under the key.
  package struct Stored: Sendable {
    /// Another number for each other value.
    package let version: UInt64
    /// nil: there is nothing, and no default was registered.
    package let value: SettingValue?
  }

  private struct State {
    /// The version that was announced last.
    var announced: UInt64
    var registered: (version: UInt64, value: SettingValue)?
    var nextListener = 0
    var listeners: [Int: @Sendable () -> Void] = [:]

    init() { announced = 0 }
  }

  init(_ name: ExactString, of suite: LiveSuite) {
    self.name = name
    self.suite = suite
    let version = stored.version
    state.withLock { $0.announced = version }
  }

  /// What is stored now, for a reader that may be observed.
  package var current: Stored {
    access()
    return stored
  }

  /// Notes that the key is read by code that may be observed.
  package func access() { registrar.access(self, keyPath: path) }

  /// A number that grows whenever the key may read as something else, and after it does.
  package var generation: UInt64 { suite.generation &+ registrations.load(ordering: .acquiring) }

  /// What is stored now, without a trace.
  package var stored: Stored {
    if let entry = suite.entry(name) { return Stored(version: entry.version, value: entry.value) }
    guard let registered = state.withLock({ $0.registered }) else { return Stored(version: 0, value: nil) }
    return Stored(version: registered.version, value: registered.value)
  }

  /// Stores a value, or with nil removes the key, and tells everyone before it returns.
  package func set(_ value: SettingValue?) throws(StoreError) {
    try suite.set([name: value])
  }

  /// What the key reads as while nothing is stored; it is never stored itself, and the last one counts.
  package func register(_ value: SettingValue) {
    let isNew = state.withLock { state in
      guard state.registered?.value != value else { return false }
      // Apart from the versions of stored values, which count up from 1.
      let version = (state.registered?.version ?? 1 << 63) + 1
      state.registered = (version, value)
      return true
    }
    guard isNew else { return }
    registrations.add(1, ordering: .releasing)
    announce()
  }

  /// Calls `look` after each change from now on, from whatever thread made or found it.
  package func listen(_ look: @escaping @Sendable () -> Void) -> Listening {
    let number = state.withLock { state in
      state.nextListener += 1
      state.listeners[state.nextListener] = look
      return state.nextListener
    }
    return Listening { [weak self] in
      _ = self?.state.withLock { $0.listeners.removeValue(forKey: number) }
    }
  }

  /// Tells everyone where there is something new.
  ///
  /// Observers are told after the change: who reads and observes again in between has the new value already,
  /// and nobody misses one.
  func announce() {
    let version = stored.version
    let listeners = state.withLock { state -> [Int: @Sendable () -> Void]? in
      guard state.announced != version else { return nil }
      state.announced = version
      return state.listeners
    }
    guard let listeners else { return }
    registrar.withMutation(of: self, keyPath: path) {}
    for (_, look) in listeners.sorted(by: { $0.key < $1.key }) { look() }
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
