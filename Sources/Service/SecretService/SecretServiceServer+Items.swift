import BusServer
import Model
import SecretMemory
import SecretServiceProtocol
import Store
import Tree

// Items: how they are found, made, changed and deleted.

extension SecretServiceServer {
  typealias Attributes = StoredAttributes.Attributes

  /// An item of the keychain by the last element of its path. - Throws: `ProtocolError` where there is none.
  func storedItem(
    _ name: String, in collection: ServiceObject.Collection
  ) throws(ProtocolError) -> Item {
    guard let id = ServiceObject.name(ofElement: name).map({ ItemID(rawValue: $0) }) else { throw .noObject }
    guard let item = try here({ () throws(StoreError) in try keychain.item(id) }), !item.identity.isSeal,
      StoredAttributes.collection(of: item) == collection
    else {
      throw .noObject
    }
    return item
  }

  nonisolated static func path(of id: ItemID, in collection: ServiceObject.Collection) -> String {
    ServiceObject.item(collection, ServiceObject.element(of: id.rawValue)).path
  }

  private nonisolated static func path(of item: Item) -> String {
    path(of: item.id, in: StoredAttributes.collection(of: item))
  }

  /// The paths of the items of a collection. A keychain that was never unlocked shows none.
  func itemPaths(of collection: ServiceObject.Collection) throws(ProtocolError) -> [String] {
    switch collection {
    case .session: return memory.names.map { ServiceObject.item(.session, $0).path }
    case .login, .further:
      guard keychain.engine.locking.lockState != .sealed else { return [] }
      return try contents(of: collection).paths()
    }
  }

  /// The items of a collection of the keychain.
  func contents(of collection: ServiceObject.Collection) throws(ProtocolError) -> CollectionContents {
    CollectionContents(
      keychain: keychain, collection: collection, created: entry(of: collection)?.created,
      items: try present().items(of: collection))
  }

  /// nil: they are so few that they can be described on the thread of the bus.
  func largeContents(
    of collection: ServiceObject.Collection
  ) throws(ProtocolError) -> CollectionContents? {
    guard collection != .session, keychain.engine.locking.lockState != .sealed else { return nil }
    let contents = try contents(of: collection)
    return contents.items.count > ItemSearch.mostAtOnce ? contents : nil
  }

  /// The items by their attributes, made with the first call that needs it.
  func present() throws(ProtocolError) -> AttributeIndex {
    if let index { return index }
    let made = try here { () throws(StoreError) in try Self.readIndex(keychain) }
    index = made
    return made
  }

  private nonisolated static func readIndex(_ keychain: KeychainStore) throws(StoreError) -> AttributeIndex {
    try keychain.read { AttributeIndex($0.all.filter { !$0.identity.isSeal }) }
  }

  /// Makes the index on another thread, if there is none: it takes long for many items. Where it fails, ``present()`` does it.
  func prepareIndex() async {
    guard index == nil, keychain.engine.locking.lockState != .sealed else { return }
    if let indexing { return await indexing.value }
    let task = Task(executorPreference: loop) { await self.makeIndex() }
    indexing = task
    await task.value
  }

  private func makeIndex() async {
    let count = changesWithoutIndex
    let made = try? await elsewhere { [keychain] () throws(StoreError) in try Self.readIndex(keychain) }
    indexing = nil
    // A change that was published meanwhile may be missing in it.
    guard index == nil, changesWithoutIndex == count, let made else { return }
    index = made
  }

  /// A search for items with these attributes. `collection`: nil stands for all.
  private func itemSearch(
    _ attributes: Attributes, in collection: ServiceObject.Collection?
  ) throws(ProtocolError) -> ItemSearch {
    let isSealed = keychain.engine.locking.lockState == .sealed
    return ItemSearch(
      keychain: keychain, attributes: attributes, collection: collection,
      candidates: isSealed ? [] : try present().candidates(for: attributes))
  }

  /// The items of the keychain with these attributes, the last changed first. `collection`: nil stands for all.
  func search(
    _ attributes: Attributes, in collection: ServiceObject.Collection? = nil
  ) throws(ProtocolError) -> [Item] {
    let search = try itemSearch(attributes, in: collection)
    return try here { () throws(StoreError) in try search.items() }
  }

  /// Whether a client gets the secret without a question.
  func isOpen(_ item: Item, for call: BusMessage) -> Bool { access(of: call).isOpen(item) }

  private func access(of call: BusMessage) -> ItemAccess {
    ItemAccess(
      keychain: keychain, permitted: Set(clients[call.sender]?.permits.keys.map { $0 } ?? []),
      caller: caller(of: call))
  }

  private func requested(_ value: BusValue) throws(ProtocolError) -> Attributes {
    // An empty dictionary may have lost its type on the way.
    guard let entries = value.stringEntries else {
      throw .invalid("the attributes are no dictionary of strings")
    }
    return Dictionary(entries.map { (ExactString($0), ExactString($1)) }) { _, last in last }
  }

  /// SearchItems of the service. A keychain of which not even names are known is unlocked first, as a search that finds nothing
  /// would be taken for an answer.
  func searchService(_ call: BusMessage) throws(ProtocolError) -> [BusValue]? {
    let attributes = try requested(call.arguments[0])
    if keychain.engine.locking.lockState == .sealed {
      replyLater(to: call) { (server) async throws(ProtocolError) in
        await server.openKeychain(for: "keychain", call, number: server.nextNumber())
        await server.prepareIndex()
        let (search, reply) = (try server.itemSearch(attributes, in: nil), server.reply(to: attributes, call))
        return try await server.elsewhere { () throws(StoreError) in reply(try search.items()) }
      }
      return nil
    }
    return try find(attributes, in: nil, call, reply(to: attributes, call))
  }

  /// The values of SearchItems of the service for the items that were found.
  private func reply(to attributes: Attributes, _ call: BusMessage) -> @Sendable ([Item]) -> [BusValue] {
    let access = access(of: call)
    let inMemory = memory.search(attributes).map { ServiceObject.item(.session, $0).path }
    return { items in
      var (open, closed): ([String], [String]) = ([], [])
      for item in items {
        if access.isOpen(item) {
          open.append(Self.path(of: item))
        } else {
          closed.append(Self.path(of: item))
        }
      }
      return [.paths(open + inMemory), .paths(closed)]
    }
  }

  /// Replies to a search. Where many items have to be looked at, another thread does it, and other clients are answered meanwhile.
  private func find(
    _ attributes: Attributes, in collection: ServiceObject.Collection?, _ call: BusMessage,
    _ reply: @escaping @Sendable ([Item]) -> [BusValue]
  ) throws(ProtocolError) -> [BusValue]? {
    if index != nil || keychain.engine.locking.lockState == .sealed {
      let search = try itemSearch(attributes, in: collection)
      guard search.candidates.count > ItemSearch.mostAtOnce else {
        return reply(try here { () throws(StoreError) in try search.items() })
      }
    }
    replyAfterChange(to: call) { (server) async throws(ProtocolError) in
      await server.prepareIndex()
      let search = try server.itemSearch(attributes, in: collection)
      return try await server.elsewhere { () throws(StoreError) in reply(try search.items()) }
    }
    return nil
  }

  /// SearchItems of a collection.
  func searchCollection(
    _ call: BusMessage, _ collection: ServiceObject.Collection
  ) throws(ProtocolError) -> [BusValue]? {
    let attributes = try requested(call.arguments[0])
    switch collection {
    case .session: return [.paths(memory.search(attributes).map { ServiceObject.item(.session, $0).path })]
    case .login, .further:
      return try find(attributes, in: collection, call) { [.paths($0.map { Self.path(of: $0) })] }
    }
  }
}

// MARK: - Creating

/// An item as a client wants it to be.
struct WantedItem: Sendable {
  var label: String
  var attributes: StoredAttributes.Attributes
  var secret: BusBytes
  var contentType: String
  var collection: ServiceObject.Collection
}

/// The outcome of one attempt to store an item.
private enum StoreStep: Sendable {
  case done(ItemID)
  /// A person has to agree first.
  case asks(Item)
}

extension SecretServiceServer {
  private static let prefix = "org.freedesktop.Secret.Item."

  /// CreateItem.
  func createItem(
    _ call: BusMessage, in collection: ServiceObject.Collection
  ) throws(ProtocolError) -> [BusValue]? {
    let wanted = try wanted(call, collection)
    guard case .bool(let replaces) = call.arguments[2] else { throw .invalid("no `replace`") }
    switch collection {
    case .session: return try createInMemory(wanted, replaces)
    case .login, .further:
      try requireWritable()
      guard keychain.engine.locking.lockState == .open else { throw ProtocolError(StoreError.locked) }
      replyAfterChange(to: call) { (server) async throws(ProtocolError) in
        let id = try await server.store(wanted, replacing: replaces, call)
        return [.path(Self.path(of: id, in: collection)), .path("/")]
      }
      return nil
    }
  }

  /// Adds an item, or replaces the one that is there.
  private func store(
    _ wanted: WantedItem, replacing isReplacing: Bool, _ call: BusMessage
  ) async throws(ProtocolError) -> ItemID {
    // A person may have to be asked, which no other change waits for.
    var permits: [ItemID: Permit] = [:]
    while true {
      let known = permits
      let step = try await exclusively { (server) async throws(ProtocolError) -> StoreStep in
        guard server.exists(wanted.collection) else { throw .noObject }
        guard isReplacing, let present = try server.itemToReplace(wanted) else {
          return .done(try server.learned(try await server.add(wanted)))
        }
        if let permit = known[present.id] {
          return .done(try server.learned(try await server.rewrite(present, wanted, permit)))
        }
        guard case .given(let permit) = try server.permission(for: present, to: .write, call) else {
          return .asks(present)
        }
        return .done(try server.learned(try await server.rewrite(present, wanted, permit)))
      }
      switch step {
      case .done(let id): return id
      case .asks(let item): permits[item.id] = try await permit(for: item, to: .write, call)
      }
    }
  }

  /// The next search finds it, whenever the change is published.
  private func learned(_ id: ItemID) throws(ProtocolError) -> ItemID {
    try learn(id)
    return id
  }

  /// The item that has just these attributes, else the one of the same service and account (or server and user) that
  /// the attributes find. An item of the class `other` with further attributes is another item.
  private func itemToReplace(_ wanted: WantedItem) throws(ProtocolError) -> Item? {
    let present = try search(wanted.attributes, in: wanted.collection)
    if let same = present.first(where: { StoredAttributes.attributes(of: $0) == wanted.attributes }) {
      return same
    }
    let read = ServiceItem(label: wanted.label, attributes: wanted.attributes)
    let identity = read.item(ItemID(rawValue: "")).identity
    if case .other = identity { return nil }
    return present.first { $0.identity == identity }
  }

  private func wanted(
    _ call: BusMessage, _ collection: ServiceObject.Collection
  ) throws(ProtocolError) -> WantedItem {
    var (label, attributes, type): (String, Attributes, String?) = ("", [:], nil)
    for (name, value) in call.arguments[0].propertyEntries {
      switch name {
      case Self.prefix + "Label": label = value.text ?? ""
      case Self.prefix + "Attributes": attributes = try self.attributes(value)
      case Self.prefix + "Type": type = value.text
      default: break
      }
    }
    if let type, !type.isEmpty, attributes[SecretSchema.attribute] == nil {
      attributes[SecretSchema.attribute] = ExactString(type)
    }
    let (secret, contentType) = try self.secret(call.arguments[1], call)
    return WantedItem(
      label: label, attributes: attributes, secret: secret, contentType: contentType, collection: collection)
  }

  func attributes(_ value: BusValue) throws(ProtocolError) -> Attributes {
    guard let entries = value.stringEntries else {
      throw .invalid("the attributes are no dictionary of strings")
    }
    guard let attributes = StoredAttributes.attributes(entries) else {
      throw .denied("attributes that begin with `keyhole.` are Keyhole's own")
    }
    return attributes
  }

  /// The secret of a structure `(oayays)`, in memory for secrets.
  func secret(_ value: BusValue, _ call: BusMessage) throws(ProtocolError) -> (BusBytes, String) {
    let parts = value.members
    guard parts.count == 4, let parameters = parts[1].bytes, let bytes = parts[2].bytes,
      let type = parts[3].text
    else { throw .invalid("this is no secret") }
    let cipher = try cipher(at: parts[0].path, call)
    let secret = try cipher.decode(parameters: parameters.secret, value: bytes.secret)
    return (BusBytes(secret), Self.plainTypes.contains(type) ? StoredAttributes.plainText : type)
  }

  /// Types of plain text in UTF-8. libsecret takes a secret for text only where its type is `text/plain`: so it shows what
  /// a program in Go has stored.
  private static let plainTypes = ["", "text/plain", "text/plain; charset=utf8"]

  func requireWritable() throws(ProtocolError) {
    guard !options.isReadOnly else { throw .denied("the service is read-only") }
  }

  private nonisolated func add(_ wanted: WantedItem) async throws(ProtocolError) -> ItemID {
    try await elsewhere { [keychain] () throws(StoreError) in
      let now = Timestamp.now
      return try Distinction.resolving(keychain, label: wanted.label) { (distinction) throws(StoreError) in
        var item = Item(
          id: ItemID(rawValue: ""), identity: .other(label: ""), created: now, modified: now)
        StoredAttributes.change(
          &item, label: wanted.label, attributes: wanted.attributes, contentType: wanted.contentType,
          distinction: distinction)
        StoredAttributes.place(&item, in: wanted.collection)
        return try keychain.add(item, secret: wanted.secret.secret, origin: .indirect).id
      }
    }
  }

  private func rewrite(
    _ item: Item, _ wanted: WantedItem, _ permit: Permit
  ) async throws(ProtocolError) -> ItemID {
    try await elsewhere { [keychain] () throws(StoreError) -> Void in
      try Distinction.resolving(keychain, label: wanted.label) { (distinction) throws(StoreError) -> Void in
        try keychain.rewrite(item.id, readingSecret: false, permit, origin: .indirect) {
          (item, secret) throws(StoreError) in
          StoredAttributes.change(
            &item, label: wanted.label, attributes: wanted.attributes, contentType: wanted.contentType,
            distinction: distinction)
          item.modified = .now
          try secret.replace(with: wanted.secret)
        }
      }
    }
    return item.id
  }

  private func createInMemory(_ wanted: WantedItem, _ replaces: Bool) throws(ProtocolError) -> [BusValue] {
    try memory.requireRoom(for: wanted.secret)
    let now = Timestamp.now.seconds
    let replaced =
      replaces ? memory.names.first { memory[$0]?.attributes == wanted.attributes } : nil
    let name = replaced ?? "\(nextNumber())"
    let created = replaced.flatMap { memory[$0]?.created } ?? now
    memory[name] = SessionCollection.Entry(
      label: wanted.label, attributes: wanted.attributes, secret: wanted.secret,
      contentType: wanted.contentType, created: created, modified: now)
    let path = ServiceObject.item(.session, name).path
    emit(.session, replaced == nil ? "ItemCreated" : "ItemChanged", path)
    return [.path(path), .path("/")]
  }
}

extension SecretBytes {
  /// Takes the bytes of another one.
  mutating func replace(with other: BusBytes) throws(StoreError) {
    do {
      try resize(to: 0)
      try other.secret.withSpan(0..<other.secret.count) { (bytes) throws(SecretMemoryError) in
        try append(bytes)
      }
    } catch { throw .outOfMemory }
  }
}

// MARK: - Deleting

extension SecretServiceServer {
  /// Delete of an item. It needs no prompt: a file of the mount is deleted without one too, and is kept for a while.
  func deleteItem(
    _ call: BusMessage, _ collection: ServiceObject.Collection, _ name: String
  ) throws(ProtocolError) -> [BusValue]? {
    try requireWritable()
    if case .session = collection {
      memory[name] = nil
      emit(.session, "ItemDeleted", ServiceObject.item(.session, name).path)
      return [.path("/")]
    }
    let item = try storedItem(name, in: collection)
    guard keychain.engine.locking.isAccessible(item) else { throw ProtocolError(StoreError.locked) }
    _ = try present()
    replyAfterChange(to: call) { (server) async throws(ProtocolError) in
      try await server.elsewhere { [keychain = server.keychain] () throws(StoreError) in
        try keychain.remove([item.id], origin: .indirect)
      }
      server.publishRemoval(of: item.id)
      return [.path("/")]
    }
    return nil
  }
}
