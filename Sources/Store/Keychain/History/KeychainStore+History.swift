public import Model
import Platform
import SecretMemory
import Synchronization

// Earlier versions of items. A version is given under what protects it and what protects the item now.
extension KeychainStore {
  /// The versions of the item with an identity, and of those with it that were removed, the oldest first. No secret is
  /// opened, and nothing is asked.
  ///
  /// - Throws: `unsupported` for a keychain that keeps none; as `VersionedKeychain`.
  public nonisolated func versions(of identity: ItemIdentity) throws(StoreError) -> [ItemVersion] {
    try engine.requireHistory().versions(of: identity)
  }

  /// The identities of items of which versions are kept. - Throws: as `versions`.
  public nonisolated func identitiesWithVersions() throws(StoreError) -> [ItemIdentity] {
    try engine.requireHistory().identitiesWithVersions()
  }

  /// Before `restore`: nil where no question is needed, because a removed item comes back as it was.
  ///
  /// - Throws: `notFound`, `locked`, `accessDenied` for a caller that the rules keep out.
  public nonisolated func permission(
    toRestore version: ItemVersion, path: @autoclosure () -> String, by caller: Caller
  ) throws(StoreError) -> Permission? {
    guard try takesPermit(version) else { return nil }
    return try permission(for: version.item, to: .write, path: path(), by: caller)
  }

  /// Makes an item what it was, which is a change like any other: `VersionedKeychain.restore`.
  ///
  /// - Returns: the item as it is stored.
  /// - Throws: `accessDenied` without the permit that it takes; as `VersionedKeychain.restore`.
  @discardableResult
  public nonisolated func restore(_ version: ItemVersion, _ permit: Permit? = nil) throws(StoreError) -> Item
  {
    if try takesPermit(version) { try checkAccess(to: version.item, permit) }
    try loadUnlessLookedUp()
    let present = try presentItem(of: version.item)
    let history = try engine(for: permit).requireHistory()
    noteUse()
    defer { wipeStack() }
    return try change { () throws(StoreError) in
      try history.restore(version.item.id)
    } note: { store, restored in
      store.note(restored, kind: present == nil ? .created : .modified, since: present)
    }
  }

  /// Deletes the versions of an item, and items with its identity that were removed; the item stays. As for a removal, no
  /// question is asked.
  ///
  /// - Returns: how many versions.
  /// - Throws: `unsupported`, `locked`, `readOnly`, `noSpace`.
  @discardableResult
  public nonisolated func purgeVersions(of identity: ItemIdentity) throws(StoreError) -> Int {
    let history = try engine.requireHistory()
    return try change { () throws(StoreError) in
      try history.purge(identity)
    } note: { _, _ in
    }
  }

  /// The same for all items. - Throws: as `purgeVersions(of:)`.
  @discardableResult
  public nonisolated func purgeAllVersions() throws(StoreError) -> Int {
    let history = try engine.requireHistory()
    return try change { () throws(StoreError) in
      try history.purgeAll()
    } note: { _, _ in
    }
  }

  /// Deletes what is kept for too long already, now and, as long as something is changed, once a day. It does nothing where
  /// the keychain keeps no versions, or can't be changed.
  public nonisolated func pruneVersions() {
    lastPruning.store(max(1, AccessController.bootTime()), ordering: .relaxed)
    isPruningDue.store(false, ordering: .relaxed)
    guard remote == nil, let history = engine.history, engine.readOnlyReason == nil else { return }
    _ = presentRetention()
    do throws(StoreError) {
      try executor.run { () throws(StoreError) in _ = try history.prune() }
    } catch {
      // It was never unlocked, for one thing.
      isPruningDue.store(true, ordering: .relaxed)
    }
  }

  private static let secondsBetweenPrunings: UInt64 = 86_400

  nonisolated func pruneVersionsIfDue() {
    let last = lastPruning.load(ordering: .relaxed)
    guard last > 0 else { return }
    let isDue = AccessController.bootTime() > last &+ Self.secondsBetweenPrunings
    guard isDue || isPruningDue.load(ordering: .relaxed) else { return }
    lastPruning.store(AccessController.bootTime(), ordering: .relaxed)
    Background.run { [weak self] in self?.pruneVersions() }
  }

  /// A version, as an item of which the id is the version's.
  nonisolated func foundVersion(_ id: ItemID) throws(StoreError) -> Item {
    guard let history = engine.history else { throw .notFound }
    return try history.version(id).item
  }

  /// The items whose protection holds for an item: itself; of a version also the item that it was one of, as it is or as it was
  /// removed, and the one that has that item's name now. So neither a removal nor a new item without protection opens it.
  nonisolated func protecting(_ item: Item) throws(StoreError) -> [Item] {
    guard let owner = item.id.version?.item, let history = engine.history else { return [item] }
    if let present = try self.item(owner) { return [item, present] }
    var items = [item]
    let last = try isDecidedElsewhere ? nil : history.lastVersion(ofRemoved: owner)?.item
    if let last, last.id != item.id { items.append(last) }
    if let present = try self.item(with: (last ?? item).identity) { items.append(present) }
    return items
  }

  /// The item that a version is one of; nil: it was removed, and no other has its name.
  private nonisolated func presentItem(of version: Item) throws(StoreError) -> Item? {
    guard let owner = version.id.version?.item else { return nil }
    if let present = try item(owner) { return present }
    return try item(with: version.identity)
  }

  private nonisolated func takesPermit(_ version: ItemVersion) throws(StoreError) -> Bool {
    guard version.changes.contains(.removal) else { return true }
    return try presentItem(of: version.item) != nil
  }
}
