import Model
import SecretMemory
import Store

// How items are changed.
extension SecretServiceClient {
  /// Takes items for a change, and reads them as they are now.
  ///
  /// The caller has to call `release` for each, whatever happens.
  /// - Throws: `notFound`, `locked`, `unreachable`; then nothing is taken.
  func take(_ ids: [ItemID], before deadline: Deadline) async throws(StoreError) -> [Item] {
    // First, because what is held is not read.
    if loadedOwner == nil { try await load(before: deadline) }
    let paths = Set(ids.map(\.rawValue)).sorted()
    for path in paths { await hold(path) }
    do throws(StoreError) {
      var items: [Item] = []
      for id in ids { items.append(try await current(id, before: deadline)) }
      return items
    } catch {
      for path in paths { release(path) }
      throw error
    }
  }

  private func current(_ id: ItemID, before deadline: Deadline) async throws(StoreError) -> Item {
    try await require(id, before: deadline)
    let found = try await attempt(before: deadline) { keyring, _ throws(BusError) in
      try await keyring.properties(of: id.rawValue, ServiceName.item, before: deadline)
    }
    guard let found, ledger[id] != nil else {
      if ledger.remove(id, origin: .external) { announce() }
      throw .notFound
    }
    guard found["Locked"]?.bool != true else {
      ledger.setLocked(true, id)
      throw .locked
    }
    return record(id, found, nil, isNews: true).item
  }

  func hold(_ path: String) async {
    guard !locks.take(path) else { return }
    await withCheckedContinuation { locks.wait(path, $0) }
  }

  func release(_ path: String) {
    guard locks.release(path), postponed.remove(path) != nil else { return }
    dirty.items.insert(path)
    pump()
  }

  /// Stores items that `take` gave, changed; all or nothing, as far as the service lets that be.
  func store(
    _ changes: [(old: Item, new: Item)], secret: SecretBox?, before deadline: Deadline
  ) async throws(StoreError) -> [Item] {
    let ids = Set(changes.map(\.new.id))
    let identities = changes.map(\.new.identity)
    let hasDoubles = Set(identities).count < identities.count
    let isTaken = changes.contains { change in
      change.old.identity != change.new.identity && ledger.hasOther(than: ids, with: change.new.identity)
    }
    guard !hasDoubles || Set(changes.map(\.old.identity)).count < changes.count, !isTaken else {
      throw .exists
    }
    var done: [(old: Item, new: Item)] = []
    do throws(StoreError) {
      for change in changes {
        done.append(change)
        try await write(change.old, change.new, before: deadline)
      }
      if let secret, let item = changes.first?.new { try await write(secret, to: item, before: deadline) }
    } catch {
      for change in done.reversed() { try? await write(change.new, change.old, before: deadline) }
      throw error
    }
    return try await learn(changes.map(\.new.id), secret, before: deadline)
  }

  /// Writes what differs of label and attributes.
  private func write(_ old: Item, _ new: Item, before deadline: Deadline) async throws(StoreError) {
    let (before, after) = (ServiceItem(old), ServiceItem(new))
    let path = new.id.rawValue
    var pairs = after.pairs
    if ledger[new.id]?.hasFields == true {
      pairs += before.attributes.keys.filter { after.attributes[$0] == nil }.map { ($0.string, "") }
    }
    let attributes = Variant(strings: pairs)
    try await attempt(before: deadline) { keyring, _ throws(BusError) in
      if before.attributes != after.attributes {
        try await keyring.set("Attributes", attributes, of: path, before: deadline)
      }
      if before.label != after.label {
        try await keyring.set("Label", Variant(after.label), of: path, before: deadline)
      }
    }
  }

  private func set(
    _ name: String, _ value: Variant, of path: String, before deadline: Deadline
  ) async throws(BusError) {
    _ = try await call(
      path, ServiceName.properties, "Set",
      [Variant(ServiceName.item), Variant(name), Variant(boxed: value)], before: deadline)
  }

  private func write(_ secret: SecretBox, to item: Item, before deadline: Deadline) async throws(StoreError) {
    let (id, label) = (item.id, ServiceItem(item).label)
    let contentType = typeOfContent(secret, present: ledger[id]?.contentType)
    try await attempt(before: deadline) { keyring, session throws(BusError) in
      let encoded = try session.encode(secret, contentType)
      _ = try await keyring.call(id.rawValue, ServiceName.item, "SetSecret", [encoded], before: deadline)
      // gnome-keyring sends no signal for a new secret alone; for a label, also for an equal one, it does.
      try await keyring.set("Label", Variant(label), of: id.rawValue, before: deadline)
    }
  }

  /// The items as the service has them after a change of this engine's.
  func learn(
    _ ids: [ItemID], _ secret: SecretBox?, before deadline: Deadline
  ) async throws(StoreError) -> [Item] {
    var items: [Item] = []
    for id in ids {
      let found = try await attempt(before: deadline) { keyring, _ throws(BusError) in
        try await keyring.properties(of: id.rawValue, ServiceName.item, before: deadline)
      }
      guard let found else { throw .notFound }
      items.append(note(id, found, secret))
    }
    return items
  }

  private func note(_ id: ItemID, _ properties: Variant, _ secret: SecretBox?) -> Item {
    let contentType = secret.map { typeOfContent($0, present: ledger[id]?.contentType) } ?? ""
    let measure = secret?.withSecret { Measure($0.span, contentType) }
    var record = record(id, properties, measure, isNews: true)
    // A value that is written again has a new time, also where it is the same.
    if secret != nil { record.item.modified = .now }
    _ = ledger.put(record, origin: .local)
    return record.item
  }

  /// As it was, but for what is no text: KeePassXC keeps text as text, and loses what that can't hold.
  func typeOfContent(_ secret: SecretBox, present: String?) -> String {
    let isText = secret.withSecret { $0.span.isPlainText }
    if let present, !present.isEmpty, isText == true || !present.hasPrefix("text/") { return present }
    return isText == true ? "text/plain" : "application/octet-stream"
  }
}

extension Span<UInt8> {
  /// UTF-8 without control characters but those of lines. Not through a String, which would be a copy of the secret.
  fileprivate var isPlainText: Bool {
    var check = UTF8Check()
    for index in indices {
      let byte = self[index]
      guard check.append(byte), byte >= 0x20 || byte == 0x09 || byte == 0x0A else { return false }
    }
    return check.isComplete
  }
}

extension SecretSession {
  func encode(_ secret: SecretBox, _ contentType: String) throws(BusError) -> Variant {
    guard let encoded = secret.withSecret({ encode($0, contentType: contentType) }) else {
      throw .refused(name: BusError.noMemory, message: "")
    }
    return encoded
  }
}

extension ServiceItem {
  var pairs: [(name: String, value: String)] {
    attributes.map { ($0.key.string, $0.value.string) }
  }
}
