import ClusterRecords
import EtcdClient
package import Model
import Platform
import SecretMemory
package import Store
import VaultRecords

/// The states that items had stay in their entries, and a removed item is an entry too: so they are sealed as items are, the head answers
/// for them, and each change is one transaction. The secrets stay under the keys at which they were stored.
extension ClusterKeychain: VersionedKeychain {
  /// The engine itself.
  package var history: (any VersionedKeychain)? { self }

  package func versions(of identity: ItemIdentity) throws(StoreError) -> [ItemVersion] {
    try withItems { table throws(StoreError) in
      var holders = table.removed(identity)
      if let id = table.ids[identity], let entry = table.entries[id] { holders.append((id, entry)) }
      var versions: [ItemVersion] = []
      for (id, entry) in holders { versions += try kept(id, entry) }
      return versions.sorted { $0.number < $1.number }
    }
  }

  package func version(_ id: ItemID) throws(StoreError) -> ItemVersion {
    guard let (owner, number) = id.version, let key = ItemKey(owner) else { throw .notFound }
    let found = try withItems { table throws(StoreError) in
      guard let entry = table[key] else { return nil as ItemVersion? }
      return try kept(key, entry).first { $0.number == number }
    }
    guard let found else { throw .notFound }
    return found
  }

  package func lastVersion(ofRemoved item: ItemID) throws(StoreError) -> ItemVersion? {
    guard let id = ItemKey(item) else { return nil }
    return try withItems { table throws(StoreError) in
      guard let entry = table.removed[id] else { return nil }
      return try kept(id, entry).last
    }
  }

  package func identitiesWithVersions() throws(StoreError) -> [ItemIdentity] {
    try withItems { table throws(StoreError) in
      let holders = [table.entries, table.removed].joined().filter { id, entry in
        entry.versions.contains { !isOver($0) }
      }
      return Array(Set(holders.map(\.value.record.item.identity)))
    }
  }

  private func withItems<Result>(_ body: (ItemTable) throws(StoreError) -> Result) throws(StoreError)
    -> Result
  {
    try start()
    return try collection.withCopy { copy throws(StoreError) in try body(copy.items.table) }
  }

  /// Kept for too long already; it goes with the next change.
  private func isOver(_ version: ItemVersionRecord) -> Bool {
    retention?.isOver(version.replaced, at: .now) ?? false
  }

  private func kept(_ id: ItemKey, _ entry: ItemEntry) throws(StoreError) -> [ItemVersion] {
    try entry.versions.filter { !isOver($0) }.map { (version) throws(StoreError) in
      var item = try version.state(of: id).record.item
      item.id = ItemID(version: version.number, of: id.id)
      return ItemVersion(
        number: version.number, item: item, replaced: version.replaced,
        changes: VersionChanges(rawValue: version.changes))
    }
  }
}

// MARK: - Restoring

extension ClusterKeychain {
  package func restore(_ version: ItemID) throws(StoreError) -> Item {
    guard let (owner, number) = version.version else { throw .notFound }
    return try change { present throws(StoreError) in
      guard let (id, state) = try present.table.version(number, of: owner), let holder = present.table[id]
      else {
        throw .notFound
      }
      guard holder.isRemoved else { return try restore(state, of: id, over: id, holder, on: present) }
      if let other = present.ids[holder.record.item.identity], let entry = present.entries[other] {
        return try restore(state, of: id, over: other, entry, on: present)
      }
      guard holder.versions.last?.number == number else {
        return try restore(state, of: id, over: id, holder, on: present)
      }
      // It comes back as it was: nothing of it is sealed again.
      try prove(state, of: id, unlike: nil)
      let change = ItemEntryChange(id, .set(state, replacesVersions: false))
      return (ItemsPlan([change]), state.record.item)
    }
  }

  /// Opens the secrets of a state that are not those of another one: what can't be read does not take the place of something that can.
  ///
  /// - Throws: `damaged`, `locked`, `unreachable`.
  private func prove(_ state: ItemEntry, of id: ItemKey, unlike present: ItemEntry?) throws(StoreError) {
    for part in [SecretPlace.main, ItemRecord.FurtherSecret.otpauth] {
      guard let revision = state.revision(ofPart: part), present?.revision(ofPart: part) != revision else {
        continue
      }
      _ = try opened(state, id, part)
    }
  }

  /// A counter of one-time codes does not go back with the version: codes that were given out would be given out again.
  private func restore(
    _ state: ItemEntry, of owner: ItemKey, over id: ItemKey, _ present: ItemEntry, on items: VerifiedItems
  ) throws(StoreError) -> (ItemsPlan, Item) {
    var item = try present.record.item.restoring(state.record.item)
    item.modified = .now
    let keepsOtpauth = try isCountedFurther(present, id, than: state, owner)
    var changes: VersionChanges = []
    if id != owner || present.record.secretRevision != state.record.secretRevision { changes.insert(.value) }
    if !keepsOtpauth, id != owner || present.record.furtherSecrets != state.record.furtherSecrets,
      present.record.otpauth != nil || state.record.otpauth != nil
    {
      changes.insert(.otpauth)
    }
    var writing = ItemWriting(id, present, present, on: items, session)
    writing.isRestoring = true
    if id == owner {
      try prove(state, of: id, unlike: present)
      try writing.restore(state, as: item, keepingOtpauth: keepsOtpauth)
    } else {
      let further = item.otpauth
      item.keepSecrets(of: present.record.item)
      try writing.set(item)
      try writing.put(try opened(state, owner, SecretPlace.main))
      if let further, !keepsOtpauth {
        try writing.putOtpauth(try opened(state, owner, ItemRecord.FurtherSecret.otpauth), further)
      } else if further == nil {
        writing.removeOtpauth()
      }
    }
    return (try writing.plan(changes, retention), writing.entry.record.item)
  }

  /// Whether the `otpauth:` URI of an item differs from that of a state by a higher counter only.
  private func isCountedFurther(
    _ present: ItemEntry, _ id: ItemKey, than state: ItemEntry, _ owner: ItemKey
  ) throws(StoreError) -> Bool {
    let part = ItemRecord.FurtherSecret.otpauth
    guard let now = present.revision(ofPart: part), let then = state.revision(ofPart: part),
      now != then || id != owner
    else { return false }
    let counted = try opened(present, id, part)
    let former = try opened(state, owner, part)
    return KeyURI.isCountedFurther(counted.span, than: former.span)
  }
}

// MARK: - Deleting

extension ClusterKeychain {
  /// The transaction that purges an item of its history deletes the secrets too.
  @discardableResult package func purge(_ identity: ItemIdentity) throws(StoreError) -> Int {
    try change { present throws(StoreError) in
      var holders = present.table.removed(identity)
      if let id = present.ids[identity], let entry = present.entries[id] { holders.append((id, entry)) }
      return purging(holders)
    }
  }

  private func purging(_ holders: [(id: ItemKey, entry: ItemEntry)]) -> (ItemsPlan, Int) {
    let holders = holders.filter { !$0.entry.versions.isEmpty }
    let changes = holders.map { ItemEntryChange($0.id, .stay, limit: .nothing) }
    return (ItemsPlan(changes), holders.reduce(0) { $0 + $1.entry.versions.count })
  }

  /// How many items are purged in one transaction.
  private static let purgedAtOnce = 25

  @discardableResult package func purgeAll() throws(StoreError) -> Int {
    try inTurns { items in
      let holders = [items.table.entries, items.table.removed].joined().lazy
        .filter { !$0.value.versions.isEmpty }.prefix(Self.purgedAtOnce)
      return purging(holders.map { ($0.key, $0.value) })
    }
  }

  @discardableResult package func prune() throws(StoreError) -> Int {
    guard let retention, readOnlyReason == nil else { return 0 }
    let now = session.pruning.time
    return try inTurns { items in
      var (plan, count) = (ItemsPlan(), 0)
      for (id, entry) in [items.table.entries, items.table.removed].joined() where !entry.versions.isEmpty {
        let limit = ItemEntryChange.Limit(entry.record.item.retention(retention), at: now)
        let dropped =
          entry.versions.count - entry.versions.kept(most: Int(limit.most), since: limit.oldest).count
        guard dropped > 0 else { continue }
        plan.changes.append(ItemEntryChange(id, .stay, limit: limit))
        count += dropped
        if plan.changes.count == Self.purgedAtOnce { break }
      }
      return (plan, count)
    }
  }

  /// Makes transactions until there is nothing to do. - Returns: the sum.
  private func inTurns(_ plan: (VerifiedItems) -> (ItemsPlan, Int)) throws(StoreError) -> Int {
    var sum = 0
    while true {
      let count = try change { present throws(StoreError) in plan(present) }
      guard count > 0 else { return sum }
      sum += count
    }
  }

  /// The removal of an item, of which is kept what is to be kept.
  func removal(of id: ItemKey, _ old: ItemEntry, on items: VerifiedItems) -> ItemEntryChange {
    let item = old.record.item
    guard let retention = retention.map({ item.retention($0) }), retention.keepsAny, item.identity.hasVersions
    else { return ItemEntryChange(id, .remove) }
    return ItemEntryChange(
      id, .remove,
      kept: .init(
        number: items.version + 1, time: items.end(of: old, others: session.pruning.latestOther),
        changes: VersionChanges.removal.rawValue),
      limit: .init(retention, at: session.pruning.time))
  }

  /// Of all removed items of one identity, no more versions are kept than of one item: the changes of those that were removed before.
  func limitsOfRemoved(_ ids: Set<ItemKey>, on items: VerifiedItems) -> [ItemEntryChange] {
    guard let retention else { return [] }
    var changes: [ItemEntryChange] = []
    for id in ids {
      guard let entry = items.entries[id] else { continue }
      let own = entry.record.item.retention(retention)
      guard own.keepsAny else { continue }
      // It is removed with its versions and one more.
      var room = own.versions - min(own.versions, entry.versions.count + 1)
      for (former, removed) in items.table.removed(entry.record.item.identity).reversed() {
        if removed.versions.count > room {
          let limit = ItemEntryChange.Limit(most: room, oldest: Timestamp(seconds: .min))
          changes.append(ItemEntryChange(former, .stay, limit: limit))
        }
        room -= min(room, removed.versions.count)
      }
    }
    return changes
  }
}
