package import Model
package import Store
import Synchronization

/// One suite with the keys that this process looks at.
package final class LiveSuite: Sendable {
  package let name: ExactString
  private let owner: LiveSettings
  private let store: SuiteStore
  private let keys = Mutex<[ExactString: LiveKey]>([:])
  /// The generation up to which every key's changes have been announced.
  private let announced = Mutex<UInt64>(0)
  private let wasRead = Atomic(false)

  init(_ name: ExactString, of owner: LiveSettings) {
    self.name = name
    self.owner = owner
    store = owner.store.suite(name)
  }

  /// The same object for the same name.
  package func key(_ name: String) -> LiveKey {
    let name = ExactString(name)
    if let known = keys.withLock({ $0[name] }) { return known }
    let new = LiveKey(name, of: self)
    return keys.withLock { keys in
      let key = keys[name] ?? new
      keys[name] = key
      return key
    }
  }

  var generation: UInt64 { store.generation }

  /// The cached entry of a key; it reads memory only.
  func entry(_ key: ExactString) -> SuiteSnapshot.Entry? {
    store.snapshot?.entries[key]
  }

  /// Changes values in one step, also for other processes, and notifies all listeners of the result.
  package func set(_ changes: [ExactString: SettingValue?]) throws(StoreError) {
    defer { announce(changes) }
    do throws(StoreError) {
      try commit(changes)
    } catch {
      guard case .notFound = error else { throw error }
      // A missing key need not be removed.
      guard changes.values.contains(where: { $0 != nil }) else { return }
      try makeSuite()
      try commit(changes)
    }
  }

  /// Removes every key.
  package func removeAll() throws(StoreError) {
    defer { announce() }
    do throws(StoreError) {
      try store.update { $0.settings = [:] }
    } catch {
      guard case .notFound = error else { throw error }
    }
  }

  /// Looks at the file again, as it may have been changed from outside.
  package func refresh() {
    load()
    announce()
  }

  /// Returns when everything that was set is on the disk.
  package func synchronize() throws(StoreError) {
    do throws(StoreError) {
      try store.synchronize()
    } catch {
      guard case .notFound = error else { throw error }
    }
  }

  /// Every key that is stored.
  package var storedKeys: [ExactString] {
    store.snapshot.map { Array($0.entries.keys) } ?? []
  }

  private func commit(_ changes: [ExactString: SettingValue?]) throws(StoreError) {
    try store.update { contents in
      for (key, value) in changes {
        contents.settings[key] = Self.setting(value, over: contents.settings[key])
      }
    }
  }

  /// An equal value keeps its time.
  private static func setting(_ value: SettingValue?, over old: Setting?) -> Setting? {
    guard let value else { return nil }
    return old?.value == value ? old : Setting(value)
  }

  /// Another process may make it in the same moment.
  private func makeSuite() throws(StoreError) {
    do throws(StoreError) {
      try owner.store.createSuite(name)
    } catch {
      guard case .exists = error else { throw error }
    }
  }

  /// Reads the file, unless that was done before.
  fileprivate func readOnce() {
    guard !wasRead.load(ordering: .acquiring) else { return }
    load()
    wasRead.store(true, ordering: .releasing)
  }

  private func load() {
    do throws(StoreError) {
      _ = try store.fetch()
    } catch {
      Log.note(name.string, error)
    }
  }

  private func announce() {
    let generation = store.generation
    for key in keys.withLock({ Array($0.values) }) { key.announce() }
    announced.withLock { $0 = max($0, generation) }
  }

  /// After changes of this process's own: every other key is looked at only where others changed something too.
  private func announce(_ changes: [ExactString: SettingValue?]) {
    let generation = store.generation
    let areAlone = announced.withLock { announced in
      guard generation == announced + 1 else { return false }
      announced = generation
      return true
    }
    guard areAlone else { return announce() }
    let changed = keys.withLock { keys in changes.keys.compactMap { keys[$0] } }
    for key in changed { key.announce() }
  }
}

/// The suites of one store that this process uses.
package final class LiveSettings: Sendable {
  fileprivate let store: SettingsStore
  private let suites = Mutex<[ExactString: WeakSuite]>([:])
  private let watch: Watch?

  /// Tells what changes outside, for as long as it lives; nil stands for “anything”.
  package typealias Watch = any Sendable

  private struct WeakSuite: Sendable {
    weak let suite: LiveSuite?
  }

  /// `watch` starts to call the function that it gets with the names of suites that may have changed, nil for
  /// all; what it returns lives as long as this.
  package init(
    _ store: SettingsStore, watch: (_ changed: @escaping @Sendable (String?) -> Void) -> Watch? = { _ in nil }
  ) {
    self.store = store
    let target = Target()
    self.watch = watch { name in target.settings.withLock { $0.settings }?.refresh(name) }
    target.settings.withLock { $0.settings = self }
  }

  /// Where changes go: it must not keep the settings alive.
  private final class Target: Sendable {
    struct Reference { weak var settings: LiveSettings? }
    let settings = Mutex(Reference())
  }

  /// The same object for the same name, as long as something uses it.
  ///
  /// It is registered before its file is read, so that a change that comes in between is followed by a second look.
  package func suite(_ name: String) -> LiveSuite {
    let suite = registered(ExactString(name))
    suite.readOnce()
    return suite
  }

  private func registered(_ name: ExactString) -> LiveSuite {
    suites.withLock { suites in
      if let known = suites[name]?.suite { return known }
      let new = LiveSuite(name, of: self)
      suites[name] = WeakSuite(suite: new)
      return new
    }
  }

  /// Looks again at suites that may have changed; unused ones are left alone.
  private func refresh(_ name: String?) {
    let known = suites.withLock { suites in
      guard let name else { return suites.values.compactMap(\.suite) }
      return suites[ExactString(name)]?.suite.map { [$0] } ?? []
    }
    for suite in known { suite.refresh() }
  }
}
