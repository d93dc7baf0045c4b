import FoundationEssentials
import KeychainSelection
package import Model
import Platform
import SecretMemory
package import Store
import Synchronization
package import WrapperCore

/// The keychain for wrappers: items by queries, and a notification for every change.
package final class LiveKeychain: Sendable {
  /// A keychain with the object that watches for changes by others, for as long as it exists.
  package struct Opened: Sendable {
    let store: KeychainStore
    let watch: @Sendable (_ changed: @escaping @Sendable () -> Void) -> (any Sendable)?

    package init(
      store: KeychainStore,
      watch: @escaping @Sendable (@escaping @Sendable () -> Void) -> (any Sendable)? = { _ in nil }
    ) {
      self.store = store
      self.watch = watch
    }
  }

  /// The keychain as this process opens it for itself where no mount serves it: for a passphrase that its user types.
  package struct Alone: Sendable {
    let isServed: @Sendable () -> Bool
    let open: @Sendable () throws(StoreError) -> Opened?

    /// - Parameters:
    ///   - isServed: whether a mount serves the keychain now.
    ///   - open: opens it, locked; nil: the user can't be asked.
    package init(
      isServed: @escaping @Sendable () -> Bool, open: @escaping @Sendable () throws(StoreError) -> Opened?
    ) {
      (self.isServed, self.open) = (isServed, open)
    }
  }

  private struct State {
    var store: KeychainStore?
    /// Opened by this process for itself, for which its user was asked at least once.
    var alone: Opened?
    var watch: (any Sendable)?
    /// The last time that was given to an item: no two are the same, so that the order of times is the order
    /// in which items were made.
    var clock = Timestamp(seconds: 0)
    var wasOpen = false
    /// When the keychain was last found to be locked.
    var locked: ContinuousClock.Instant?
  }

  /// For so long after a lock no person is asked: a program that observes a value reads it again when the keychain is locked, and
  /// that must not open a dialog at once.
  private static let quietAfterLock = Duration.seconds(2)

  private let enrolledFingers: @Sendable () -> String?
  private let open: @Sendable () throws(StoreError) -> Opened
  private let alone: Alone?
  private let state = Mutex(State())
  private let announcer = Announcer()

  /// - Parameters:
  ///   - enrolledFingers: the digest of the fingers that are enrolled now; nil: it can't be determined.
  ///   - alone: how this process opens it for itself; nil: it has its user asked by the store that `open` gives.
  ///   - open: opens the keychain when it is first used.
  package init(
    enrolledFingers: @escaping @Sendable () -> String? = EnrolledSet.digest, alone: Alone? = nil,
    open: @escaping @Sendable () throws(StoreError) -> Opened
  ) {
    (self.enrolledFingers, self.alone, self.open) = (enrolledFingers, alone, open)
  }

  /// The items that a query matches, the oldest first, as they are stored now.
  package func items(_ query: ItemQuery) throws(StoreError) -> [Item] {
    let store = try store()
    try store.refresh()
    return try known(query, in: store)
  }

  /// As `items`, without reading changes that other processes made in the last milliseconds.
  package func knownItems(_ query: ItemQuery) throws(StoreError) -> [Item] {
    try known(query, in: store())
  }

  /// The secret of an item: the program's own from here on, in ordinary memory.
  func secret(of item: ItemID) throws(StoreError) -> Data {
    let store = try store()
    let secret = try store.secret(of: item, permit(for: item, in: store))
    var data = Data(count: secret.count)
    var bytes = data.mutableSpan
    bytes.copy(secret.span, at: 0)
    return data
  }

  /// Adds an item; `change` fills in what it has beside its identity. - Throws: `exists`.
  func add(
    _ query: ItemQuery, secret: Data, _ change: (inout Item) throws(StoreError) -> Void
  ) throws(StoreError) {
    let now = tick()
    var item = Item(id: ItemID(rawValue: ""), identity: query.identity, created: now, modified: now)
    try change(&item)
    let bytes = try secretBytes(secret)
    item.attributes[FingerprintEnrollment.attribute] = try FingerprintEnrollment.note(
      for: item.access, enrolledFingers)
    let store = try store()
    let permit = try store.permission(forNew: item, path: query.text, by: .current).fetch()
    try store.add(item, secret: bytes, permit)
    announcer.tell()
  }

  /// Changes an item and its secret in one step; an equal secret is no change of it. - Throws: `notFound`.
  func rewrite(
    _ item: ItemID, secret: Data, _ change: (inout Item) throws(StoreError) -> Void
  ) throws(StoreError) {
    let now = tick()
    let store = try store()
    guard let known = try store.read({ $0[item] }) else { throw .notFound }
    let changed = try changedProtection(of: known, change)
    let permit = try permit(for: known, changingTo: changed, in: store)
    try store.rewrite(item, readingSecret: true, permit) {
      (item, stored) throws(StoreError) in
      let bytes = try secretBytes(secret)
      if !(stored == bytes) {
        stored = bytes
        item.modified = now
      }
      try change(&item)
      if let changed {
        item.attributes[FingerprintEnrollment.attribute] = changed.attributes[FingerprintEnrollment.attribute]
      }
    }
    announcer.tell()
  }

  /// Removes items, all or none.
  func remove(_ items: [ItemID]) throws(StoreError) {
    guard !items.isEmpty else { return }
    try store().remove(items)
    announcer.tell()
  }

  /// Calls `look` after each change of any item.
  package func listen(_ look: @escaping @Sendable () -> Void) -> Listening {
    announcer.listen(look)
  }

  /// Waits while a person is asked.
  private func permit(for item: ItemID, in store: KeychainStore) throws(StoreError) -> Permit {
    try store.permission(for: item, to: .read, path: item.rawValue, by: .current).fetch()
  }

  /// Waits while a person is asked. `changed`: the item with another protection; nil: that stays.
  private func permit(
    for item: Item, changingTo changed: Item?, in store: KeychainStore
  ) throws(StoreError) -> Permit {
    guard let changed else {
      return try store.permission(for: item, to: .readWrite, path: item.id.rawValue, by: .current).fetch()
    }
    return try store.permission(for: item, changingTo: changed, path: item.id.rawValue, by: .current).fetch()
  }

  /// The item as it is to be, with the fingers that new flags hold it to; nil: its protection stays.
  private func changedProtection(
    of item: Item, _ change: (inout Item) throws(StoreError) -> Void
  ) throws(StoreError) -> Item? {
    var changed = item
    try change(&changed)
    guard changed.access != item.access else { return changed.hasSameProtection(as: item) ? nil : changed }
    changed.attributes[FingerprintEnrollment.attribute] = try FingerprintEnrollment.note(
      for: changed.access, enrolledFingers)
    return changed
  }

  private func known(_ query: ItemQuery, in store: KeychainStore) throws(StoreError) -> [Item] {
    let found = try store.read { index in index.all.filter { query.matches($0.identity) } }
    return found.sorted { ($0.created, $0.id.rawValue) < ($1.created, $1.id.rawValue) }
  }

  /// Opens the keychain where it is not open yet; it stays open.
  private func store() throws(StoreError) -> KeychainStore {
    if let store = state.withLock({ $0.store }) { return store }
    let opened = try open()
    let (store, isFirst) = state.withLock { state in
      guard let known = state.store else {
        state.store = opened.store
        return (opened.store, true)
      }
      return (known, false)
    }
    guard isFirst else { return store }
    try begin(with: opened)
    return store
  }

  private func begin(with opened: Opened) throws(StoreError) {
    // The watch stands before anything is read, so that nothing is missed in between.
    let watch = opened.watch { [weak self] in self?.refresh() }
    state.withLock { $0.watch = watch }
    noteLock()
    try opened.store.load()
  }

  /// Runs `body`, and again once the user has unlocked the keychain where it is locked. The process of the mount asks; without
  /// a mount one that this process starts.
  func unlockingOnDemand<Value>(
    _ query: ItemQuery, _ body: () throws(StoreError) -> Value
  ) throws(StoreError) -> Value {
    do throws(StoreError) { return try body() } catch {
      guard error == .locked, UnlockController.isWantedByEnvironment, let store = storeThatMayAsk() else {
        throw error
      }
      try unlock(store, for: query.text)
    }
    return try body()
  }

  private func unlock(_ store: KeychainStore, for path: String) throws(StoreError) {
    guard let alone = try openAlone() else { return try store.unlockOnDemand(for: path, by: .current) }
    try alone.store.unlockOnDemand(for: path, by: .current)
    let isNew = state.withLock { state in
      defer { state.store = alone.store }
      return state.store !== alone.store
    }
    guard isNew else { return }
    try begin(with: alone)
    // Not on this thread, which may be reading for an observer.
    Background.run { [announcer] in announcer.tell() }
  }

  /// nil: a mount serves the keychain, or this process can't have its user asked.
  private func openAlone() throws(StoreError) -> Opened? {
    guard let alone, !alone.isServed() else { return nil }
    if let known = state.withLock({ $0.alone }) { return known }
    guard let opened = try alone.open() else { return nil }
    return state.withLock { state in
      let first = state.alone ?? opened
      state.alone = first
      return first
    }
  }

  private func storeThatMayAsk() -> KeychainStore? {
    noteLock()
    return state.withLock { state in
      if let locked = state.locked, locked.duration(to: .now) < Self.quietAfterLock { return nil }
      return state.store
    }
  }

  private func noteLock() {
    state.withLock { state in
      guard let store = state.store else { return }
      let isOpen = store.engine.locking.lockState == .open
      if state.wasOpen, !isOpen { state.locked = .now }
      state.wasOpen = isOpen
    }
  }

  private func refresh() {
    noteLock()
    try? state.withLock { $0.store }?.refresh()
    announcer.tell()
  }

  private func tick() -> Timestamp {
    let time = Timestamp.now
    return state.withLock { state in
      let next =
        state.clock.nanoseconds < 999_999_999
        ? Timestamp(seconds: state.clock.seconds, nanoseconds: state.clock.nanoseconds + 1)
        : Timestamp(seconds: state.clock.seconds + 1)
      state.clock = max(time, next)
      return state.clock
    }
  }
}

private func secretBytes(_ data: Data) throws(StoreError) -> SecretBytes {
  do {
    var bytes = try SecretBytes(count: data.count)
    var room = bytes.mutableSpan
    room.copy(data.span, at: 0)
    return bytes
  } catch {
    throw .outOfMemory
  }
}
