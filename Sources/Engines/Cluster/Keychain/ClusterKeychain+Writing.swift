import ClusterRecords
import EtcdClient
package import Model
package import SecretMemory
import Store
import VaultRecords

extension ClusterKeychain {
  /// Makes one transaction of what `plan` says of the present items; it may be asked again where another client was faster.
  ///
  /// - Returns: what `plan` returned beside the transaction; a plan without edits changes nothing.
  func change<Result>(
    _ plan: (VerifiedItems) throws(StoreError) -> (CollectionPlan<KeychainEntry>, Result)
  ) throws(StoreError) -> Result {
    try session.limited { () throws(StoreError) in
      try start()
      try requireWritable()
      return try collection.withWriter { () throws(StoreError) in try make(plan) }
    }
  }

  private func make<Result>(
    _ plan: (VerifiedItems) throws(StoreError) -> (CollectionPlan<KeychainEntry>, Result)
  ) throws(StoreError) -> Result {
    repeat {
      try foldJournal()
      let present = try collection.withCopy { $0.items }
      let (made, result): (CollectionPlan<KeychainEntry>, Result)
      do throws(StoreError) { (made, result) = try plan(present) } catch {
        // It has seen the copy, which may be behind.
        guard try collection.isPresent(present.version) else { continue }
        throw error
      }
      if made.edits.isEmpty {
        guard try collection.isPresent(present.version) else { continue }
        return result
      }
      let settled = try settled(made)
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
      var writing = ItemWriting(id, ItemEntry(record: ItemRecord(item: item, secretRevision: 0)), session)
      try writing.put(secret, part: SecretPlace.main)
      if let further = item.otpauth { try writing.putOtpauth(otpauth, further) }
      return (writing.plan, writing.entry.record.item)
    }
  }

  package func update(
    _ items: [ItemID], _ body: (inout Item) throws(StoreError) -> Void
  ) throws(StoreError) -> [Item] {
    try change { present throws(StoreError) in
      var plan = CollectionPlan<KeychainEntry>([])
      var changed: [ItemKey: ItemEntry] = [:]
      var order: [ItemKey] = []
      for item in items {
        guard let id = ItemKey(item), let old = changed[id] ?? present.entries[id] else {
          throw .notFound
        }
        var new = old.record.item
        try body(&new)
        (new.id, new.collection, new.isSealed) = (item, nil, false)
        new.keepSecrets(of: old.record.item)
        try limits.check(new)
        var writing = ItemWriting(id, old, session)
        try writing.set(new)
        changed[id] = writing.entry
        order.append(id)
      }
      try present.checkIdentities(changed)
      for id in Set(order) {
        guard let entry = changed[id], entry.record.item != present.entries[id]?.record.item else {
          continue
        }
        plan.edits.append(CollectionEdit(id, .item(entry)))
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
      if readingSecret, new == old.record.item, secret == unchanged {
        return (CollectionPlan([]), old.record.item)
      }
      var writing = ItemWriting(id, old, session)
      try writing.set(new, replacesAll: old.valueKeys.count == 1)
      try writing.put(secret, part: SecretPlace.main)
      try present.checkIdentities([id: writing.entry])
      return (writing.plan, writing.entry.record.item)
    }
  }

  package func remove(_ items: [ItemID]) throws(StoreError) {
    try change { present throws(StoreError) in
      var plan = CollectionPlan<KeychainEntry>([])
      for id in Set(items.compactMap(ItemKey.init)) where present.entries[id] != nil {
        plan.edits.append(CollectionEdit(id, nil))
      }
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
