package import Model
import Store
import Synchronization

/// One key of a suite. All wrappers of that key in this process share it, so that they agree and are notified of each
/// other's changes.
package final class LiveKey: Sendable {
  /// The suite owns its keys; the user of a key holds the suite too.
  unowned let suite: LiveSuite
  package let name: ExactString
  private let announcer = Announcer()
  private let state = Mutex(State())
  private let registrations = Atomic<UInt64>(0)

  /// The stored value of the key.
  package struct Stored: Sendable {
    /// Another number for each other value.
    package let version: UInt64
    /// nil: there is nothing, and no default was registered.
    package let value: SettingValue?
  }

  private struct State {
    /// The version that was announced last.
    var announced: UInt64 = 0
    var registered: (version: UInt64, value: SettingValue)?
  }

  init(_ name: ExactString, of suite: LiveSuite) {
    self.name = name
    self.suite = suite
    let version = stored.version
    state.withLock { $0.announced = version }
  }

  /// The stored value, for a reader that may be observed.
  package var current: Stored {
    access()
    return stored
  }

  /// Notes that the key is read by code that may be observed.
  package func access() { announcer.access() }

  /// A number that grows whenever the key may read as something else, and after it does.
  package var generation: UInt64 { suite.generation &+ registrations.load(ordering: .acquiring) }

  /// The stored value, not registered with Observation.
  package var stored: Stored {
    if let entry = suite.entry(name) { return Stored(version: entry.version, value: entry.value) }
    guard let registered = state.withLock({ $0.registered }) else { return Stored(version: 0, value: nil) }
    return Stored(version: registered.version, value: registered.value)
  }

  /// Stores a value, or with nil removes the key, and tells everyone before it returns.
  package func set(_ value: SettingValue?) throws(StoreError) {
    try suite.set([name: value])
  }

  /// The default of the key; it is never stored itself, and the last one counts.
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

  /// Hands every value from the present one on to an outlet, each once and in order.
  func follow<Value>(
    _ outlet: Outlet<Value>, _ current: @escaping () -> (version: UInt64?, value: Value)
  ) -> Listening {
    announcer.follow(outlet, current)
  }

  /// Tells everyone where there is something new.
  func announce() {
    let version = stored.version
    let isNew = state.withLock { state in
      defer { state.announced = version }
      return state.announced != version
    }
    if isNew { announcer.tell() }
  }
}
