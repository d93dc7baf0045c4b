public import Model
import Platform
public import SecretMemory
import Store

extension SecretServiceEngine {
  /// Sets labels and attributes, one item after the other. - Throws: as the protocol; `unreachable`.
  public func update(
    _ items: [ItemID], _ body: (inout Item) throws(StoreError) -> Void
  ) throws(StoreError) -> [Item] {
    try change(items) { items, _ throws(StoreError) in
      for index in items.indices { try body(&items[index]) }
      return nil
    }
  }

  /// SetSecret, and the attributes that changed. - Throws: as the protocol; `unreachable`.
  public func rewrite(
    _ item: ItemID, readingSecret: Bool,
    _ body: (inout Item, inout SecretBytes) throws(StoreError) -> Void
  ) throws(StoreError) -> Item {
    let items = try change([item]) { items, deadline throws(StoreError) in
      var secret = try readingSecret ? self.secret(of: item, until: deadline) : Self.empty()
      let before = try readingSecret ? SecretBox(copying: secret) : nil
      try body(&items[0], &secret)
      try Self.check(secret, of: items[0])
      // An equal one is not written: that would be a change for all watchers.
      if let before, try before.take() == secret { return nil }
      return SecretBox(secret)
    }
    return items[0]
  }
}

extension SecretServiceEngine {
  /// Changes items as they are at this moment; no other thread of this process changes them meanwhile.
  private func change(
    _ ids: [ItemID], _ body: (inout [Item], Deadline) throws(StoreError) -> SecretBox?
  ) throws(StoreError) -> [Item] {
    let deadline = Deadline(milliseconds: Self.patience)
    let before = try wait(until: deadline) { keyring, deadline throws(StoreError) in
      try await keyring.take(ids, before: deadline)
    }
    defer { release(ids) }
    var after = before
    let secret = try body(&after, deadline)
    for index in after.indices { after[index].keepFixed(of: before[index]) }
    let changes = zip(before, after).map { (old: $0, new: $1) }
    return try wait(until: deadline) { keyring, deadline throws(StoreError) in
      try await keyring.store(changes, secret: secret, before: deadline)
    }
  }

  private func release(_ ids: [ItemID]) {
    let keyring = keyring
    Task(executorPreference: keyring.loop) {
      for path in Set(ids.map(\.rawValue)) { await keyring.release(path) }
    }
  }
}

extension Item {
  /// Restores the properties that the engine or the service determines.
  fileprivate mutating func keepFixed(of old: Item) {
    (id, size, collection) = (old.id, old.size, old.collection)
  }
}
