import ClusterRecords
import EtcdClient
package import Model
package import SecretMemory
import Store
import VaultRecords

extension ClusterKeychain {
  /// Makes one transaction of what `plan` says of the present items; it may be asked again where another client was faster.
  ///
  /// - Returns: what `plan` returned beside the transaction; a plan without changes changes nothing.
  func change<Result>(
    _ plan: (VerifiedItems) throws(StoreError) -> (ItemsPlan, Result)
  ) throws(StoreError) -> Result {
    try session.limited { () throws(StoreError) in
      // Of the copy on this device nothing is changed.
      try follow()
      if let readOnlyReason { throw .readOnly(reason: readOnlyReason) }
      return try collection.withWriter { () throws(StoreError) in try make(plan) }
    }
  }

  private func make<Result>(
    _ plan: (VerifiedItems) throws(StoreError) -> (ItemsPlan, Result)
  ) throws(StoreError) -> Result {
    repeat {
      try foldJournal()
      let present = try collection.withCopy { copy throws(StoreError) in try copy.items }
      let (made, result): (ItemsPlan, Result)
      do throws(StoreError) { (made, result) = try plan(present) } catch {
        // It has seen the copy, which may be behind.
        guard try collection.isPresent(present.version) else { continue }
        throw error
      }
      if made.changes.isEmpty {
        guard try collection.isPresent(present.version) else { continue }
        return result
      }
      let settled = try settled(made, on: present)
      guard let draft = try collection.draft(settled, on: present.version) else { continue }
      guard try collection.send(draft) == .made else { continue }
      // The change is made; where this fails, the next client that changes the keychain does it.
      if settled.journal != nil { try? foldJournal() }
      return result
    } while ContinuousClock.now < session.end
    throw .unreachable(reason: "other clients change the keychain all the time")
  }

  package func add(_ item: Item, secret: borrowing SecretBytes) throws(StoreError) -> Item {
    var item = item
    item.otpauth = nil
    let nothing: SecretBytes
    do { nothing = try SecretBytes() } catch { throw .outOfMemory }
    return try add(item, secret: secret, otpauth: nothing)
  }

  package func add(
    _ item: Item, secret: borrowing SecretBytes, otpauth: borrowing SecretBytes
  ) throws(StoreError) -> Item {
    try limits.check(item)
    let id = ItemKey.random()
    var item = item
    (item.id, item.size, item.collection, item.isSealed) = (id.id, secret.count, nil, false)
    return try change { present throws(StoreError) in
      guard present.ids[item.identity] == nil else { throw .exists }
      let entry = ItemEntry(record: ItemRecord(item: item, secretRevision: 0))
      var writing = ItemWriting(id, nil, entry, on: present, session)
      try writing.put(secret)
      if let further = item.otpauth { try writing.putOtpauth(otpauth, further) }
      return (try writing.plan(nil, nil), writing.entry.record.item)
    }
  }

  package func update(
    _ items: [ItemID], _ body: (inout Item) throws(StoreError) -> Void
  ) throws(StoreError) -> [Item] {
    try change { present throws(StoreError) in
      var changed: [ItemKey: ItemEntry] = [:]
      var order: [ItemKey] = []
      for item in items {
        guard let id = ItemKey(item), let stored = present.entries[id] else { throw .notFound }
        let old = changed[id] ?? stored
        var new = old.record.item
        try body(&new)
        (new.id, new.collection, new.isSealed) = (item, nil, false)
        new.keepSecrets(of: old.record.item)
        try limits.check(new)
        var writing = ItemWriting(id, stored, old, on: present, session)
        try writing.set(new)
        changed[id] = writing.entry
        order.append(id)
      }
      try present.checkIdentities(changed)
      var plan = ItemsPlan()
      for id in Set(order) {
        guard let entry = changed[id], let old = present.entries[id], entry.record.item != old.record.item
        else { continue }
        plan.changes.append(
          try ItemWriting(id, old, entry, on: present, session).change([], retention))
      }
      return (plan, order.compactMap { changed[$0]?.record.item })
    }
  }

  package func rewrite(
    _ item: ItemID, readingSecret: Bool,
    _ body: (inout Item, inout SecretBytes) throws(StoreError) -> Void
  ) throws(StoreError) -> Item {
    try change { present throws(StoreError) in
      guard let id = ItemKey(item), let old = present.entries[id] else { throw .notFound }
      var secret = try self.secret(of: item, part: SecretPlace.main, isNeeded: readingSecret)
      var new = old.record.item
      let unchanged = try Self.copy(secret)
      try body(&new, &secret)
      new.keepSecrets(of: old.record.item)
      (new.id, new.collection, new.isSealed) = (item, nil, false)
      try limits.check(new)
      let isSame = readingSecret && secret == unchanged
      if isSame, new == old.record.item { return (ItemsPlan(), old.record.item) }
      var writing = ItemWriting(id, old, old, on: present, session)
      try writing.set(new, replacesAll: !isSame && old.valueKeys.count == 1)
      if !isSame { try writing.put(secret) }
      try present.checkIdentities([id: writing.entry])
      return (try writing.plan(isSame ? [] : .value, retention), writing.entry.record.item)
    }
  }

  package func remove(_ items: [ItemID]) throws(StoreError) {
    try change { present throws(StoreError) in
      var plan = ItemsPlan()
      let ids = Set(items.compactMap(ItemKey.init)).filter { present.entries[$0] != nil }
      for id in ids {
        guard let old = present.entries[id] else { continue }
        plan.changes.append(removal(of: id, old, on: present))
      }
      plan.changes += limitsOfRemoved(ids, on: present)
      return (plan, ())
    }
  }

  func secret(of item: ItemID, part: UInt8, isNeeded: Bool) throws(StoreError) -> SecretBytes {
    if isNeeded { return try secret(of: item, part: part) }
    do { return try SecretBytes() } catch { throw .outOfMemory }
  }

  static func copy(_ secret: borrowing SecretBytes) throws(StoreError) -> SecretBytes {
    do { return try SecretBytes(copying: secret) } catch { throw .outOfMemory }
  }
}
