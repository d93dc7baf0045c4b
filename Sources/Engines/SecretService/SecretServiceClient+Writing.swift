import Model
import SecretMemory
import Store
import Synchronization

/// A secret on its way between threads.
final class SecretBox: Sendable {
  private let secret: Mutex<SecretBytes?>

  init(_ secret: consuming SecretBytes) {
    self.secret = Mutex(consume secret)
  }

  /// - Throws: `outOfMemory`.
  convenience init(copying secret: borrowing SecretBytes) throws(StoreError) {
    do { self.init(try SecretBytes(copying: secret)) } catch { throw .outOfMemory }
  }

  /// nil: there is no memory for it.
  convenience init?(copying bytes: UnsafeRawBufferPointer) {
    guard let secret = unsafe try? SecretBytes(copying: bytes) else { return nil }
    self.init(secret)
  }

  /// The secret, once.
  func take() throws(StoreError) -> SecretBytes {
    guard let secret = secret.withLock({ $0.take() }) else { throw .outOfMemory }
    return secret
  }

  /// Lends the secret, which stays.
  func withSecret<Value>(_ body: (borrowing SecretBytes) -> Value?) -> Value? {
    secret.withLock { secret in
      guard let taken = secret.take() else { return nil }
      let value = body(taken)
      secret = consume taken
      return value
    }
  }
}

// MARK: Reading one secret

extension SecretServiceClient {
  /// One round trip.
  func secret(of id: ItemID, before deadline: Deadline) async throws(StoreError) -> SecretBox {
    try await require(id, before: deadline)
    let box = try await attempt(before: deadline) { keyring, session throws(BusError) in
      let answer = try await keyring.call(
        id.rawValue, ServiceName.item, "GetSecret", [Variant(path: session.path)], before: deadline)
      guard let encoded = answer[0] else { throw .refused(name: BusError.empty, message: "") }
      let secret = unsafe session.decode(encoded) { bytes, _ in unsafe SecretBox(copying: bytes) }
      guard let secret else { throw .refused(name: BusError.empty, message: "") }
      guard let secret else { throw .refused(name: BusError.noMemory, message: "") }
      return secret
    }
    notice(box, of: id)
    return box
  }

  /// - Throws: `notFound` for what is no item here; it need not even be an object path.
  private func require(_ id: ItemID, before deadline: Deadline) async throws(StoreError) {
    if loadedOwner == nil { try await load(before: deadline) }
    guard ledger[id] != nil else { throw .notFound }
  }

  /// Not every service tells of every change.
  private func notice(_ secret: SecretBox, of id: ItemID) {
    guard let record = ledger[id], !locks.isHeld(id.rawValue) else { return }
    let measure = secret.withSecret { secret in
      unsafe secret.withUnsafeBytes { unsafe Measure($0, record.contentType) }
    }
    guard measure?.digest != record.digest else { return }
    dirty.items.insert(id.rawValue)
    pump()
  }
}

extension BusError {
  /// Asked for one secret, none came: so some services say that it is locked.
  static let empty = "org.freedesktop.Secret.Error.IsLocked"
  static let noMemory = "keyhole.NoMemory"
}

// MARK: Changing items

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

  private func hold(_ path: String) async {
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
  private func learn(
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
    let measure = secret?.withSecret { secret in
      unsafe secret.withUnsafeBytes { unsafe Measure($0, contentType) }
    }
    var record = record(id, properties, measure, isNews: true)
    // A value that is written again has a new time, also where it is the same.
    if secret != nil { record.item.modified = .now }
    _ = ledger.put(record, origin: .local)
    return record.item
  }

  /// As it was, but for what is no text: KeePassXC keeps text as text, and loses what that can't hold.
  private func typeOfContent(_ secret: SecretBox, present: String?) -> String {
    let isText = secret.withSecret { unsafe $0.withUnsafeBytes { unsafe $0.isPlainText } }
    if let present, !present.isEmpty, isText == true || !present.hasPrefix("text/") { return present }
    return isText == true ? "text/plain" : "application/octet-stream"
  }
}

extension UnsafeRawBufferPointer {
  /// UTF-8 without control characters but those of lines. Not through a String, which would be a copy of the secret.
  fileprivate var isPlainText: Bool {
    var check = UTF8Check()
    return unsafe allSatisfy { check.append($0) && ($0 >= 0x20 || $0 == 0x09 || $0 == 0x0A) }
      && check.isComplete
  }
}

extension SecretSession {
  fileprivate func encode(_ secret: SecretBox, _ contentType: String) throws(BusError) -> Variant {
    guard let encoded = secret.withSecret({ encode($0, contentType: contentType) }) else {
      throw .refused(name: BusError.noMemory, message: "")
    }
    return encoded
  }
}

extension ServiceItem {
  fileprivate var pairs: [(name: String, value: String)] {
    attributes.map { ($0.key.string, $0.value.string) }
  }
}

// MARK: Adding and removing

extension SecretServiceClient {
  /// - Throws: `exists`, `locked`, `accessDenied` where a person refused, `unreachable`.
  func add(_ item: Item, _ secret: SecretBox, before deadline: Deadline) async throws(StoreError) -> Item {
    if loadedOwner == nil { try await load(before: deadline) }
    locks.beginAdding()
    defer { endAdding() }
    try await checkAbsence(of: item.identity, before: deadline)
    let collection = try await collection(for: item, before: deadline)
    let wanted = ServiceItem(item)
    let contentType = typeOfContent(secret, present: nil)
    let path = try await attempt(before: deadline) { keyring, session throws(BusError) in
      let properties = Variant(properties: [
        (ServiceName.item + ".Label", Variant(wanted.label)),
        (ServiceName.item + ".Attributes", Variant(strings: wanted.pairs)),
      ])
      let answer = try await keyring.call(
        collection, ServiceName.collection, "CreateItem",
        [properties, try session.encode(secret, contentType), Variant(false)], before: deadline)
      return try await keyring.path(made: answer)
    }
    return try await learn([ItemID(rawValue: path)], secret, before: deadline)[0]
  }

  private func endAdding() {
    locks.endAdding()
    guard !locks.isAdding else { return }
    dirty.items.formUnion(postponed.filter { !locks.isHeld($0) })
    postponed = postponed.filter { locks.isHeld($0) }
    pump()
  }

  /// The path of an item that was made, at once or after a person was asked.
  private func path(made answer: Variant) async throws(BusError) -> String {
    if let path = answer[0]?.string, path != "/" { return path }
    guard let prompt = answer[1]?.string, let result = try await ask(prompt), let path = result.string else {
      throw .refused(name: BusError.dismissed, message: "")
    }
    return path
  }

  /// The service is asked too: it may have items of which no signal has come yet.
  private func checkAbsence(
    of identity: ItemIdentity, before deadline: Deadline
  ) async throws(StoreError) {
    if let query = ServiceItem.query(for: identity) {
      try await attempt(before: deadline) { keyring, session throws(BusError) in
        let attributes = Variant(strings: query.map { ($0.key.string, $0.value.string) })
        let answer = try await keyring.call(
          ServiceName.path, ServiceName.service, "SearchItems", [attributes], before: deadline)
        let found = (answer[0]?.strings ?? []).filter { path in
          keyring.ledger[ItemID(rawValue: path)] == nil || keyring.dirty.items.contains(path)
        }
        try await keyring.read(found, session, before: deadline)
      }
    }
    guard !ledger.hasOther(than: [], with: identity) else { throw .exists }
  }

  /// The collection of a new item: the one that it had before, else the default collection.
  private func collection(for item: Item, before deadline: Deadline) async throws(StoreError) -> String {
    if let name = item.collection,
      let known = collections.keys.first(where: { ItemID(rawValue: $0 + "/1").collectionName == name })
    {
      return known
    }
    let answer = try await attempt(before: deadline) { keyring, _ throws(BusError) in
      try await keyring.call(
        ServiceName.path, ServiceName.service, "ReadAlias", [Variant("default")], before: deadline)
    }
    if let path = answer[0]?.string, path != "/" { return path }
    if let other = collections.keys.filter({ !$0.hasSuffix("/session") }).min() { return other }
    return try await makeCollection(before: deadline)
  }

  /// The first collection of a new keyring, with the alias `default`, as libsecret makes it. The service asks for its
  /// password in a window of its own.
  private func makeCollection(before deadline: Deadline) async throws(StoreError) -> String {
    let label = Variant(properties: [(ServiceName.collection + ".Label", Variant("Login"))])
    return try await attempt(before: deadline) { keyring, _ throws(BusError) in
      let answer: Variant
      do throws(BusError) {
        answer = try await keyring.call(
          ServiceName.path, ServiceName.service, "CreateCollection", [label, Variant("default")],
          before: deadline)
      } catch {
        // Not every service can make one for another program.
        guard case .refused = error else { throw error }
        throw .refused(name: BusError.noCollection, message: "")
      }
      return try await keyring.path(made: answer)
    }
  }

  /// Also what is locked, where the service lets that be: it may ask a person.
  ///
  /// - Throws: `locked`; `accessDenied` where a person refused.
  func remove(_ ids: [ItemID], before deadline: Deadline) async throws(StoreError) {
    if loadedOwner == nil { try await load(before: deadline) }
    // Locked ones first: where they are refused, nothing is gone yet.
    let present = ids.filter { ledger[$0] != nil }
    let locked = present.filter { ledger[$0]?.isLocked == true }
    for id in locked + present.filter({ !locked.contains($0) }) {
      await hold(id.rawValue)
      defer { release(id.rawValue) }
      try await remove(id, before: deadline)
    }
  }

  private func remove(_ id: ItemID, before deadline: Deadline) async throws(StoreError) {
    do throws(StoreError) {
      try await attempt(before: deadline) { keyring, _ throws(BusError) in
        let answer = try await keyring.call(id.rawValue, ServiceName.item, "Delete", before: deadline)
        guard let prompt = answer[0]?.string, prompt != "/" else { return }
        guard try await keyring.ask(prompt) != nil else {
          throw .refused(name: BusError.dismissed, message: "")
        }
      }
    } catch {
      guard error == .notFound else { throw error }
    }
    _ = ledger.remove(id, origin: .local)
  }
}
