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
      keychain: keychain, permitted: clients[call.sender]?.itemsToRead ?? [], caller: caller(of: call))
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
