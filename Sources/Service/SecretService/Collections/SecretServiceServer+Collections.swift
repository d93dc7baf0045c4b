import BusServer
import Model
import SecretServiceProtocol
import Store

// Collections and aliases.

extension SecretServiceServer {
  /// The object at a path, where the aliases are as clients have set them.
  func object(at path: String) -> ServiceObject? {
    ServiceObject(path: path, aliases: path.hasPrefix(ServiceObject.root + "/aliases/") ? aliases : [:])
  }

  /// The collections by their aliases.
  var aliases: [String: ServiceObject.Collection] {
    isSealed ? options.defaultAlias.aliases : list.allAliases { isNamed($0) }
  }

  /// All collections: `login` and `session`, and then the others by their names.
  ///
  /// Of a keychain that was never unlocked, those that have no alias `default` are not known.
  var collections: [ServiceObject.Collection] {
    guard !isSealed else {
      let standard = options.defaultAlias.aliases["default"]
      return [.login, .session] + [standard].compactMap { $0 }.filter { $0 != .login && $0 != .session }
    }
    let names = Set(list.entries.keys).union((try? present())?.namedCollections ?? [])
    return [.login, .session] + names.sorted().map { .further($0) }
  }

  func exists(_ collection: ServiceObject.Collection) -> Bool {
    guard case .further(let name) = collection else { return true }
    guard !isSealed else { return collections.contains(collection) }
    return list.entries[name] != nil || isNamed(name)
  }

  /// nil: no client has made it, or the keychain was never unlocked.
  func entry(of collection: ServiceObject.Collection) -> FurtherCollections.Entry? {
    guard case .further(let name) = collection, !isSealed else { return nil }
    return list.entries[name]
  }

  func label(of collection: ServiceObject.Collection) -> String {
    switch collection {
    // It is sealed in the vault, as all labels are.
    case .login: (isSealed ? nil : list.loginLabel) ?? options.label.text ?? FurtherCollections.standardLabel
    case .session: "Session"
    case .further(let name): entry(of: collection)?.label ?? name
    }
  }

  private var isSealed: Bool { keychain.engine.locking.lockState == .sealed }

  /// The collections and aliases of the keychain, read again after changes.
  private var list: FurtherCollections {
    if let further { return further }
    guard let read = try? keychain.furtherCollections() else { return FurtherCollections() }
    further = read
    options.defaultAlias.note(read.allAliases { isNamed($0) }["default"])
    return read
  }

  /// Whether an item names the collection.
  private func isNamed(_ collection: String) -> Bool {
    (try? present())?.namedCollections.contains(collection) == true
  }
}

// MARK: - Changing

extension SecretServiceServer {
  /// CreateCollection. An alias of a collection that is there means that one, as the draft says.
  func createCollection(_ call: BusMessage) throws(ProtocolError) -> [BusValue]? {
    let (label, alias) = (try wantedLabel(call), call.arguments[1].text ?? "")
    if let present = aliases[alias] {
      return [.path(ServiceObject.collection(present).path), .path("/")]
    }
    try requireWritable()
    try here { () throws(StoreError) in try keychain.requireDocuments() }
    let locking = keychain.engine.locking
    guard locking.lockState == .open || !locking.needsPassphrase else {
      return [.path("/"), .path(try addPrompt(.makeCollection(label: label, alias: alias), call))]
    }
    replyAfterChange(to: call) { (server) async throws(ProtocolError) in
      if locking.lockState != .open { try await server.openWithoutPassphrase() }
      let made = try await server.makeCollection(label, alias)
      return [.path(ServiceObject.collection(made).path), .path("/")]
    }
    return nil
  }

  private func wantedLabel(_ call: BusMessage) throws(ProtocolError) -> String {
    let name = ServiceObject.collection(.login).interface + ".Label"
    guard let value = call.arguments[0].propertyEntries.first(where: { $0.0 == name })?.1 else { return "" }
    guard let label = value.text else { throw .invalid("`Label` is a string") }
    try FurtherCollections.check(label: label)
    return label
  }

  /// Makes a collection in the open keychain.
  func makeCollection(
    _ label: String, _ alias: String
  ) async throws(ProtocolError) -> ServiceObject.Collection {
    let named = try present().namedCollections
    let name = try await changeCollections { (collections) throws(ProtocolError) -> String in
      try collections.add(label, alias: alias, named, at: Timestamp.now.seconds)
    }
    return .further(name)
  }

  /// SetAlias; `/` takes an alias away.
  func setAlias(_ call: BusMessage) throws(ProtocolError) -> [BusValue]? {
    guard let alias = call.arguments[0].text, let path = call.arguments[1].path else { throw .noObject }
    var collection: ServiceObject.Collection?
    if path != "/" {
      guard case .collection(let wanted)? = object(at: path), exists(wanted) else { throw .noObject }
      collection = wanted
    }
    guard aliases[alias] != collection else { return [] }
    try requireWritable()
    guard keychain.engine.locking.lockState == .open else { throw ProtocolError(StoreError.locked) }
    replyAfterChange(to: call) { [collection] (server) async throws(ProtocolError) in
      try await server.changeCollections { (collections) throws(ProtocolError) -> Void in
        try collections.set(alias, to: collection)
      }
      return []
    }
    return nil
  }

  /// Set of the property Label.
  func setLabel(
    of collection: ServiceObject.Collection, to label: String, _ call: BusMessage
  ) throws(ProtocolError) -> [BusValue]? {
    try FurtherCollections.check(label: label)
    guard keychain.keepsDocuments || collection != .login else {
      try here { () throws(StoreError) in try options.label.change(to: label) }
      publishCollection(collection, ["Label": .string(label)])
      return []
    }
    try here { () throws(StoreError) in try keychain.requireDocuments() }
    guard keychain.engine.locking.lockState == .open else { throw ProtocolError(StoreError.locked) }
    replyAfterChange(to: call) { (server) async throws(ProtocolError) in
      try await server.changeCollections { (collections) throws(ProtocolError) -> Void in
        guard case .further(let name) = collection else {
          collections.loginLabel = label == FurtherCollections.standardLabel ? nil : label
          return
        }
        let created = collections.entries[name]?.created ?? Timestamp.now.seconds
        collections.entries[name] = FurtherCollections.Entry(label: label, created: created)
      }
      if collection == .login { server.publishCollection(collection, ["Label": .string(label)]) }
      return []
    }
    return nil
  }

  /// Delete of a collection, with its items. It needs no prompt, as the deletion of an item does not, and what is deleted is kept
  /// for a while.
  func deleteCollection(
    _ call: BusMessage, _ collection: ServiceObject.Collection
  ) throws(ProtocolError) -> [BusValue]? {
    guard case .further(let name) = collection else {
      throw .notSupported("the collection `\(collection.name)` can't be deleted")
    }
    try requireWritable()
    guard keychain.engine.locking.lockState == .open else { throw ProtocolError(StoreError.locked) }
    replyAfterChange(to: call) { (server) async throws(ProtocolError) in
      try await server.exclusively { (server) async throws(ProtocolError) -> Void in
        let items = try server.present().items(of: collection)
        try await server.changeCollections(removing: items) { (collections) in collections.remove(name) }
        for item in items { server.publishRemoval(of: item) }
      }
      server.announceCollections()
      return [.path("/")]
    }
    return nil
  }

  /// Seals the label of `login` that is in the state folder in the open vault, if there is one.
  func takeOverLabel() {
    guard options.label.text != nil, keychain.keepsDocuments, !options.isReadOnly,
      keychain.engine.locking.lockState == .open
    else { return }
    // Where it fails, the file keeps the label.
    Task(executorPreference: loop) { [weak self] in
      try? await self?.changeCollections { (_) throws(ProtocolError) -> Void in }
    }
  }

  /// Changes the collections, and removes items with them, in one transaction, and tells clients.
  @discardableResult
  private func changeCollections<Value: Sendable>(
    removing items: [ItemID] = [],
    _ body: @escaping @Sendable (inout FurtherCollections) throws(ProtocolError) -> Value
  ) async throws(ProtocolError) -> Value {
    let former = options.label
    let result = try await elsewhere { [keychain] () throws(StoreError) -> Result<Value, ProtocolError> in
      var value: Value?
      let label = former.text
      let changed = try keychain.changeCollections(removing: items) { (collections) throws(ProtocolError) in
        collections.loginLabel = collections.loginLabel ?? label
        value = try body(&collections)
      }
      switch changed {
      case .failure(let error): return .failure(error)
      case .success:
        if let label { former.remove(label) }
        return value.map { .success($0) } ?? .failure(.failed("nothing was changed"))
      }
    }
    further = nil
    announceCollections()
    return try result.get()
  }
}

// MARK: - Signals

extension SecretServiceServer {
  /// Emits the signals for the collections that have come, gone or got another label since the last call.
  func announceCollections() {
    let now = known
    let before = announced
    guard now != before else { return }
    announced = now
    for collection in before.keys where now[collection] == nil {
      emitOfService("CollectionDeleted", collection)
    }
    for collection in now.keys where before[collection] == nil {
      emitOfService("CollectionCreated", collection)
    }
    if Set(now.keys) != Set(before.keys) { publishList() }
    for (collection, label) in now {
      guard let former = before[collection], former != label else { continue }
      publishCollection(collection, ["Label": .string(label)])
    }
  }

  /// The further collections with their labels, without reading all items for those that only items name.
  private var known: [ServiceObject.Collection: String] {
    let names =
      isSealed ? [] : Set(list.entries.keys).union(index?.namedCollections ?? [])
    return Dictionary(
      uniqueKeysWithValues: names.map { name in
        let collection = ServiceObject.Collection.further(name)
        return (collection, label(of: collection))
      })
  }
}
