import BusServer
import Model
import SecretServiceProtocol
import Store

// CreateItem in the keychain: an item is added, or takes the place of the one that it is.

/// The outcome of one attempt to store an item.
private enum StoreStep: Sendable {
  case done(ItemID)
  /// A person has to agree first.
  case asks(Item)
  /// Another process has changed or removed the item that was to be replaced.
  case again
}

extension SecretServiceServer {
  /// So often another process may come between the look at an item and its change.
  private static let mostAttempts = 8

  /// Adds an item, or replaces the one that is there.
  func store(
    _ wanted: WantedItem, replacing isReplacing: Bool, _ call: BusMessage
  ) async throws(ProtocolError) -> ItemID {
    // A person may have to be asked, which no other change waits for.
    var permits: [ItemID: Permit] = [:]
    var attempts = 0
    while true {
      let known = permits
      let step = try await exclusively { (server) async throws(ProtocolError) -> StoreStep in
        guard server.exists(wanted.collection) else { throw .noObject }
        guard isReplacing else { return .done(try server.learned(try await server.add(wanted))) }
        return try await server.replaceOrAdd(wanted, known, call)
      }
      switch step {
      case .done(let id): return id
      case .asks(let item): permits[item.id] = try await permit(for: item, to: .write, call)
      case .again:
        attempts += 1
        guard attempts < Self.mostAttempts else {
          throw .failed("another process changes the item all the time; try it again")
        }
      }
    }
  }

  private func replaceOrAdd(
    _ wanted: WantedItem, _ permits: [ItemID: Permit], _ call: BusMessage
  ) async throws(ProtocolError) -> StoreStep {
    // Items that another process has stored count, also where this one has not been notified of them yet.
    try await elsewhere { [keychain] () throws(StoreError) in try keychain.refresh() }
    if let step = try await replace(wanted, permits, call) { return step }
    // The keychain has one item of an identity: where another process has added it since, this one is refused.
    if let id = try await addFirst(wanted) { return .done(try learned(id)) }
    try await elsewhere { [keychain] () throws(StoreError) in try keychain.refresh() }
    if let step = try await replace(wanted, permits, call) { return step }
    return .done(try learned(try await add(wanted)))
  }

  /// nil: there is no item to replace.
  private func replace(
    _ wanted: WantedItem, _ permits: [ItemID: Permit], _ call: BusMessage
  ) async throws(ProtocolError) -> StoreStep? {
    guard let present = try itemToReplace(wanted) else { return nil }
    if let permit = permits[present.id] { return try await rewrite(present, wanted, permit) }
    guard case .given(let permit) = try permission(for: present, to: .write, call) else {
      return .asks(present)
    }
    return try await rewrite(present, wanted, permit)
  }

  /// The next search finds it, whenever the change is published.
  private func learned(_ id: ItemID) throws(ProtocolError) -> ItemID {
    try learn(id)
    return id
  }

  /// The item that has just these attributes, as they are or but for libsecret's schema for none, else the one of the identity that
  /// they give, where that is the same item to a client (`StoredAttributes.Replacement`).
  private func itemToReplace(_ wanted: WantedItem) throws(ProtocolError) -> Item? {
    let found = try search(wanted.attributes, in: wanted.collection)
    if let same = found.first(where: { StoredAttributes.attributes(of: $0) == wanted.attributes }) {
      return same
    }
    let plain = wanted.attributes.withoutGenericSchema
    if let same = found.first(where: { StoredAttributes.attributes(of: $0).withoutGenericSchema == plain }) {
      return same
    }
    // One of the class `other` that another process has just stored under this label is not in the search yet.
    let identity = StoredAttributes.identity(of: wanted.attributes, label: wanted.label)
    guard let present = try here({ () throws(StoreError) in try keychain.item(with: identity) }),
      StoredAttributes.collection(of: present) == wanted.collection,
      StoredAttributes.Replacement(of: present, label: wanted.label, by: wanted.attributes) != nil
    else { return nil }
    return present
  }

  /// nil: there is an item of the identity.
  private func addFirst(_ wanted: WantedItem) async throws(ProtocolError) -> ItemID? {
    try await elsewhere { [keychain] () throws(StoreError) -> ItemID? in
      do throws(StoreError) {
        return try Self.add(wanted, .none, to: keychain)
      } catch {
        guard error == .exists else { throw error }
        return nil
      }
    }
  }

  private func add(_ wanted: WantedItem) async throws(ProtocolError) -> ItemID {
    try await elsewhere { [keychain] () throws(StoreError) in
      try Distinction.resolving(keychain, label: wanted.label) { (distinction) throws(StoreError) in
        try Self.add(wanted, distinction, to: keychain)
      }
    }
  }

  private nonisolated static func add(
    _ wanted: WantedItem, _ distinction: Distinction, to keychain: KeychainStore
  ) throws(StoreError) -> ItemID {
    let now = Timestamp.now
    var item = Item(id: ItemID(rawValue: ""), identity: .other(label: ""), created: now, modified: now)
    StoredAttributes.change(
      &item, label: wanted.label, attributes: wanted.attributes, contentType: wanted.contentType,
      distinction: distinction)
    StoredAttributes.noteClient(in: &item)
    StoredAttributes.place(&item, in: wanted.collection)
    return try keychain.add(item, secret: wanted.secret.secret, origin: .indirect).id
  }

  private func rewrite(
    _ item: Item, _ wanted: WantedItem, _ permit: Permit
  ) async throws(ProtocolError) -> StoreStep {
    let isDone = try await elsewhere { [keychain] () throws(StoreError) in
      try Self.rewrite(item.id, wanted, permit, in: keychain)
    }
    return isDone ? .done(try learned(item.id)) : .again
  }

  /// False: it is not the item any more that `wanted` replaces.
  private nonisolated static func rewrite(
    _ id: ItemID, _ wanted: WantedItem, _ permit: Permit, in keychain: KeychainStore
  ) throws(StoreError) -> Bool {
    do throws(StoreError) {
      try Distinction.resolving(keychain, label: wanted.label) { (distinction) throws(StoreError) -> Void in
        try keychain.rewrite(id, readingSecret: false, permit, origin: .indirect) {
          (item, secret) throws(StoreError) in
          guard StoredAttributes.collection(of: item) == wanted.collection,
            let replacement = StoredAttributes.Replacement(
              of: item, label: wanted.label, by: wanted.attributes)
          else { throw .notFound }
          StoredAttributes.change(
            &item, label: wanted.label, attributes: replacement.attributes, contentType: wanted.contentType,
            distinction: distinction)
          item.modified = .now
          try secret.replace(with: wanted.secret)
        }
      }
      return true
    } catch {
      guard error == .notFound else { throw error }
      return false
    }
  }
}
