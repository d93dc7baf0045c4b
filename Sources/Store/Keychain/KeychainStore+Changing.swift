import Model
import Platform
import Synchronization

extension KeychainStore {
  /// Has the engine change something, and the index follow in the same order.
  nonisolated func change<Value: Sendable>(
    _ call: () throws(StoreError) -> Value, note: @Sendable (isolated KeychainStore, Value) -> Void
  ) throws(StoreError) -> Value {
    if let remote {
      // Two calls may end here in another order than there; so not what they returned is believed, but
      // what the engine knows now.
      let value = try call()
      changeCount.add(1, ordering: .releasing)
      takeNews(of: remote)
      return value
    }
    _ = presentRetention()
    changes.add(1, ordering: .relaxed)
    defer { changes.subtract(1, ordering: .relaxed) }
    do throws(StoreError) {
      let value = try executor.run { () throws(StoreError) in
        let value = try call()
        assumeIsolated { note($0, value) }
        return value
      }
      changeCount.add(1, ordering: .releasing)
      pruneVersionsIfDue()
      return value
    } catch {
      lookAgain(after: error)
      throw error
    }
  }

  nonisolated func takeNews(of remote: any RemoteKeychain) {
    // Only now can it be read for the first time.
    if !isLoaded, knownLock.withLock({ $0 == .sealed }), engine.locking.lockState != .sealed {
      try? load()
      knownLock.withLock { $0 = .sealed }
    }
    executor.run {
      guard isLoaded else { return }
      assumeIsolated { $0.takeOver(ExternalChanges(remote.takeNews())) }
      noteLock()
    }
  }

  /// Publishes that another process has locked or unlocked the keychain.
  private nonisolated func noteLock() {
    let now = engine.locking.lockState
    let isNews = knownLock.withLock { known in
      guard let last = known else { return false }
      known = now
      return (last == .open) != (now == .open)
    }
    guard isNews else { return }
    if now != .open { controller?.lock() }
    feed.publish([Change(now == .open ? .unlocked : .locked, .keychain, origin: .external)])
  }

  func takeOver(_ changes: ExternalChanges) {
    defer { changeCount.add(1, ordering: .releasing) }
    switch changes {
    case .none: return
    case .items(let news): publish(news)
    case .everything(let items): replaceAll(with: items)
    }
  }

  private func publish(_ news: [ItemNews]) {
    let changes = index.withLock { index in news.map { index?.take($0) ?? [] } }
    for changes in changes where !changes.isEmpty { feed.publish(changes) }
  }

  /// Takes over what the engine has just stored. `known`: the item before, for an index that was not read.
  func note(
    _ item: Item, kind: Change.Kind, since known: Item? = nil, origin: Change.Origin = .local
  ) {
    feed.publish(taken(item, kind: kind, since: known, origin: origin))
  }

  /// The changes to publish, once the index has the item.
  func taken(
    _ item: Item, kind: Change.Kind, since known: Item? = nil, origin: Change.Origin = .local
  ) -> [Change] {
    let previous = index.withLock { index in
      defer { index?.insert(item) }
      return index == nil ? known : index?.known(item.id)
    }
    noteUnread(item.id, item)
    return changes(of: item, kind: kind, since: previous, origin: origin)
  }

  /// Takes over a transaction as a whole: who reads the index sees all of it, or nothing. Changes of documents are published before
  /// those of the items.
  func note(_ items: [Item], removed ids: [ItemID], origin: Change.Origin) {
    let (removed, known) = index.withLock { index in
      let removed = ids.compactMap { index?.remove($0) }
      var known: [ItemID: Item] = [:]
      for item in items {
        known[item.id] = index?.known(item.id)
        index?.insert(item)
      }
      return (removed, known)
    }
    for id in ids { noteUnread(id, nil) }
    for item in items { noteUnread(item.id, item) }
    for item in removed { feed.publish(item.deletion(origin: item.identity.isDocument ? .local : origin)) }
    var published: [Change] = []
    for item in items {
      let previous = known[item.id]
      // Of a document that was written, the change is made by its own file.
      let origin = item.identity.isDocument ? .local : origin
      let changes = changes(
        of: item, kind: previous == nil ? .created : .modified, since: previous, origin: origin)
      if item.identity.isDocument { published = changes + published } else { published += changes }
    }
    feed.publish(published)
  }

  private func changes(
    of item: Item, kind: Change.Kind, since previous: Item?, origin: Change.Origin
  ) -> [Change] {
    guard previous != item else { return [] }
    if item.identity.isDocument {
      return previous.map { item.changes(since: $0, origin: origin) } ?? item.creation(origin: origin)
    }
    let further = item.changesOfOtpauth(since: previous, origin: origin)
    // Nothing else of it has changed.
    if var same = previous {
      same.otpauth = item.otpauth
      if same == item { return further }
    }
    let subject = Change.Subject.item(item.id, item.identity)
    guard let previous, previous.identity != item.identity else {
      return [Change(kind, subject, origin: origin)] + further
    }
    let old = Change.Subject.item(item.id, previous.identity)
    return [Change(.moved, subject, previous: old, origin: origin)] + further
  }

  /// `known`: the item, for an index that was not read.
  func noteRemoval(of id: ItemID, _ known: Item? = nil, origin: Change.Origin = .local) {
    let removed = index.withLock { index in index == nil ? known : index?.remove(id) }
    noteUnread(id, nil)
    guard let item = removed else { return }
    feed.publish(item.deletion(origin: item.identity.isDocument ? .local : origin))
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
