public import Model
public import SecretMemory
import Synchronization

/// The keychain: the only place in the process where its items change.
///
/// Names, sizes and attributes come from an index in memory; every secret, and every change, goes through
/// the actor. The index is filled at the first call that needs it.
public actor KeychainStore {
  public nonisolated let engine: any KeychainEngine
  public nonisolated let feed: ChangeFeed
  private nonisolated let executor = QueueExecutor(label: "keyhole.keychain")
  private nonisolated let index = Mutex<KeychainIndex?>(nil)

  public init(engine: any KeychainEngine, feed: ChangeFeed = ChangeFeed()) {
    self.engine = engine
    self.feed = feed
  }

  public nonisolated var unownedExecutor: UnownedSerialExecutor {
    unsafe executor.asUnownedSerialExecutor()
  }

  /// Lends the index of all items; `body` must be short, and must not call the store.
  ///
  /// - Throws: what reading the keychain for the first time throws.
  public nonisolated func read<Value>(
    _ body: (KeychainIndex) throws(StoreError) -> Value
  ) throws(StoreError) -> Value {
    try load()
    return try index.withLock { index throws(StoreError) in
      guard let index else { throw .unreachable(reason: "the keychain is not loaded") }
      return try body(index)
    }
  }

  /// Reads every item now, so that the first use need not wait.
  public nonisolated func load() throws(StoreError) {
    guard index.withLock({ $0 == nil }) else { return }
    try executor.run { () throws(StoreError) in
      guard index.withLock({ $0 == nil }) else { return }
      let items = try engine.items()
      index.withLock { $0 = KeychainIndex(items) }
    }
  }

  /// Looks for what other processes changed, and publishes it.
  public nonisolated func refresh() throws(StoreError) {
    try executor.run { () throws(StoreError) in
      guard index.withLock({ $0 != nil }), let items = try engine.refresh() else { return }
      assumeIsolated { $0.replaceAll(with: items) }
    }
  }

  /// An item's secret, given only under the conditions that the item states.
  ///
  /// - Throws: `notFound`, `accessDenied`, `locked`, `damaged`, `unreachable`, `outOfMemory`.
  public nonisolated func secret(of item: ItemID) throws(StoreError) -> SecretBytes {
    try checkAccess(to: item)
    defer { wipeStack() }
    return try executor.run { () throws(StoreError) in try engine.secret(of: item) }
  }

  /// Whether the item's secret would be given now, without giving it.
  ///
  /// - Throws: `notFound`, `accessDenied`, `locked`.
  public nonisolated func checkAccess(to item: ItemID) throws(StoreError) {
    guard let item = try read({ $0[item] }) else { throw .notFound }
    guard item.access.isEmpty else {
      throw .accessDenied(reason: "the item has access flags, and this version has no way to ask")
    }
  }

  /// Puts a new item into the keychain; the id is the engine's to give.
  ///
  /// - Throws: `exists`, `readOnly`, `noSpace`, `tooLarge`.
  @discardableResult
  public nonisolated func add(
    _ item: Item, secret: borrowing SecretBytes
  ) throws(StoreError) -> Item {
    try load()
    defer { wipeStack() }
    return try executor.run { () throws(StoreError) in
      let added = try engine.add(item, secret: secret)
      assumeIsolated { $0.note(added, kind: .created) }
      return added
    }
  }

  /// Changes an item's secret, and whatever else `body` changes of it, in one step.
  ///
  /// - Throws: what `body` throws; `notFound`, `accessDenied`, `readOnly`, `noSpace`, `damaged`.
  @discardableResult
  public nonisolated func rewrite(
    _ item: ItemID, readingSecret: Bool,
    _ body: (inout Item, inout SecretBytes) throws(StoreError) -> Void
  ) throws(StoreError) -> Item {
    try checkAccess(to: item)
    defer { wipeStack() }
    return try executor.run { () throws(StoreError) in
      let written = try engine.rewrite(item, readingSecret: readingSecret, body)
      assumeIsolated { $0.note(written, kind: .modified) }
      return written
    }
  }

  /// Changes attributes or identities of items, all or nothing.
  ///
  /// - Throws: what `body` throws; `notFound`, `exists`, `readOnly`, `noSpace`.
  public nonisolated func update(
    _ items: [ItemID], _ body: (inout Item) throws(StoreError) -> Void
  ) throws(StoreError) {
    try load()
    try executor.run { () throws(StoreError) in
      let updated = try engine.update(items, body)
      assumeIsolated { store in
        for item in updated { store.note(item, kind: .attributes) }
      }
    }
  }

  /// Deletes items with their secrets, all or none.
  public nonisolated func remove(_ items: [ItemID]) throws(StoreError) {
    try load()
    try executor.run { () throws(StoreError) in
      try engine.remove(items)
      assumeIsolated { store in
        for item in items { store.noteRemoval(of: item) }
      }
    }
  }

  /// Returns when every commit is on the disk.
  public nonisolated func synchronize() throws(StoreError) {
    try engine.synchronize()
  }
}

extension KeychainStore {
  /// Takes over what the engine has just stored.
  private func note(_ item: Item, kind: Change.Kind) {
    let previous = index.withLock { index in
      defer { index?.insert(item) }
      return index?[item.id]
    }
    guard previous != item else { return }
    let subject = Change.Subject.item(item.id, item.identity)
    guard let previous, previous.identity != item.identity else {
      return feed.publish([Change(kind, subject, origin: .local)])
    }
    let old = Change.Subject.item(item.id, previous.identity)
    feed.publish([Change(.moved, subject, previous: old, origin: .local)])
  }

  private func noteRemoval(of id: ItemID) {
    guard let item = index.withLock({ $0?.remove(id) }) else { return }
    feed.publish([Change(.deleted, .item(id, item.identity), origin: .local)])
  }

  private func replaceAll(with items: [Item]) {
    let next = KeychainIndex(items)
    let previous = index.withLock { index in
      defer { index = next }
      return index
    }
    feed.publish(next.changes(since: previous ?? KeychainIndex()))
  }
}
