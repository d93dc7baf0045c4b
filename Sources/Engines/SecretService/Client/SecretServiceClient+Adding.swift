import Model
import Store

// How items are added and removed.
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
    for query in SecretSchema.queries(for: identity) {
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
    if let path = try await defaultCollection(before: deadline) { return path }
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
