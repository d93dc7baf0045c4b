import BusServer
import Model
import SecretServiceProtocol
import Store

// org.freedesktop.DBus.Properties.

extension SecretServiceServer {
  func answerProperties(_ call: BusMessage, _ object: ServiceObject) throws(ProtocolError) -> [BusValue]? {
    guard let interface = call.arguments[0].text else { throw .unknownInterface }
    guard interface == object.interface || interface.isEmpty else {
      // Other interfaces have no properties.
      guard call.member == "GetAll" else { throw .unknownProperty }
      return [.properties([])]
    }
    switch call.member {
    case "GetAll":
      if case .collection(let collection) = object, let contents = try largeContents(of: collection) {
        replyWithAll(of: collection, contents, call)
        return nil
      }
      return [.properties(try properties(of: object, call))]
    case "Get":
      let name = call.arguments[1].text ?? ""
      if name == "Items", case .collection(let collection) = object,
        let contents = try largeContents(of: collection)
      {
        replyAfterChange(to: call) { (server) async throws(ProtocolError) in
          [.variant(.paths(try await server.elsewhere { () throws(StoreError) in contents.paths() }))]
        }
        return nil
      }
      guard let value = try properties(of: object, call, name).first(where: { $0.0 == name })?.1 else {
        throw .unknownProperty
      }
      return [.variant(value)]
    default: return try setProperty(call, object)
    }
  }

  /// `name`: the only one that is wanted; the others may be left out.
  private func properties(
    of object: ServiceObject, _ call: BusMessage, _ name: String? = nil
  ) throws(ProtocolError) -> [(String, BusValue)] {
    switch object {
    case .service:
      return [("Collections", .paths(collections.map { ServiceObject.collection($0).path }))]
    case .collection(let collection): return try properties(of: collection, name)
    case .item(.session, let name):
      guard let entry = memory[name] else { throw .noObject }
      return entry.properties
    case .item(let collection, let name):
      let item = try storedItem(name, in: collection)
      let attributes = StoredAttributes.attributes(of: item)
      return [
        ("Locked", .bool(!isOpen(item, for: call))), ("Attributes", Self.dictionary(attributes)),
        ("Label", .string(StoredAttributes.label(of: item))),
        ("Type", .string(attributes[SecretSchema.attribute]?.string ?? "")),
        ("Created", Self.time(item.created.seconds)), ("Modified", Self.time(item.modified.seconds)),
      ]
    case .session, .prompt: return []
    }
  }

  /// Another thread describes the items: there are many.
  private func replyWithAll(
    of collection: ServiceObject.Collection, _ contents: CollectionContents, _ call: BusMessage
  ) {
    replyAfterChange(to: call) { (server) async throws(ProtocolError) in
      let own = server.ownProperties(of: collection)
      let (paths, times) = try await server.elsewhere { () throws(StoreError) in
        (contents.paths(), try contents.times())
      }
      return [
        .properties(
          own + [
            ("Items", .paths(paths)), ("Created", Self.time(times.created)),
            ("Modified", Self.time(times.modified)),
          ])
      ]
    }
  }

  /// Those that need no look at the items.
  private func ownProperties(of collection: ServiceObject.Collection) -> [(String, BusValue)] {
    [
      ("Label", .string(label(of: collection))),
      ("Locked", .bool(collection != .session && keychain.engine.locking.lockState != .open)),
    ]
  }

  private func properties(
    of collection: ServiceObject.Collection, _ name: String?
  ) throws(ProtocolError) -> [(String, BusValue)] {
    var properties = ownProperties(of: collection)
    if name == nil || name == "Items" { properties.append(("Items", .paths(try itemPaths(of: collection)))) }
    let times = try times(of: collection, name)
    return properties + [("Created", Self.time(times.created)), ("Modified", Self.time(times.modified))]
  }

  /// Those of the oldest item and of the last change; a collection that a client has made is as old as that.
  private func times(
    of collection: ServiceObject.Collection, _ name: String?
  ) throws(ProtocolError) -> (created: Int64, modified: Int64) {
    guard name == nil || name == "Created" || name == "Modified" else { return (0, 0) }
    guard collection != .session else { return (memory.created, memory.created) }
    guard keychain.engine.locking.lockState != .sealed else { return (0, 0) }
    let contents = try contents(of: collection)
    return try here { () throws(StoreError) in try contents.times() }
  }

  static nonisolated func time(_ seconds: Int64) -> BusValue { .uint64(UInt64(max(0, seconds))) }

  static nonisolated func dictionary(_ attributes: StoredAttributes.Attributes) -> BusValue {
    .strings(attributes.sorted { $0.key < $1.key }.map { ($0.key.string, $0.value.string) })
  }
}

// MARK: - Setting

extension SecretServiceServer {
  private func setProperty(_ call: BusMessage, _ object: ServiceObject) throws(ProtocolError) -> [BusValue]? {
    try requireWritable()
    let (name, value) = (call.arguments[1].text ?? "", call.arguments[2].content)
    guard case .item(let collection, let element) = object else {
      guard case .collection(let collection) = object, collection != .session, name == "Label" else {
        throw .readOnlyProperty
      }
      guard let text = value.text else { throw .invalid("`Label` is a string") }
      return try setLabel(of: collection, to: text, call)
    }
    var (label, attributes): (String?, Attributes?) = (nil, nil)
    switch (name, value) {
    case ("Label", .string(let text)): label = text
    case ("Attributes", _): attributes = try self.attributes(value)
    case ("Type", .string): return []
    case ("Label", _), ("Type", _): throw .invalid("`\(name)` is a string")
    case ("Locked", _), ("Created", _), ("Modified", _): throw .readOnlyProperty
    default: throw .unknownProperty
    }
    if case .session = collection { return try changeInMemory(element, label, attributes) }
    let item = try storedItem(element, in: collection)
    guard keychain.engine.locking.isAccessible(item) else { throw ProtocolError(StoreError.locked) }
    let (wantedLabel, wantedAttributes) = (label, attributes)
    replyAfterChange(to: call) { (server) async throws(ProtocolError) in
      try await server.elsewhere { [keychain = server.keychain] () throws(StoreError) -> Void in
        let label = wantedLabel ?? StoredAttributes.label(of: item)
        try Distinction.resolving(keychain, label: label) { (distinction) throws(StoreError) -> Void in
          try keychain.update([item.id], origin: .indirect) { (item) throws(StoreError) in
            StoredAttributes.change(
              &item, label: label, attributes: wantedAttributes ?? StoredAttributes.attributes(of: item),
              distinction: distinction)
            if wantedAttributes != nil { StoredAttributes.noteClient(in: &item) }
            item.modified = .now
          }
        }
      }
      try server.learn(item.id)
      return []
    }
    return nil
  }

  private func changeInMemory(
    _ name: String, _ label: String?, _ attributes: Attributes?
  ) throws(ProtocolError) -> [BusValue] {
    guard var entry = memory[name] else { throw .noObject }
    entry.label = label ?? entry.label
    entry.attributes = attributes ?? entry.attributes
    entry.modified = Timestamp.now.seconds
    memory[name] = entry
    emit(.session, "ItemChanged", ServiceObject.item(.session, name).path)
    return []
  }
}

extension SessionCollection.Entry {
  fileprivate var properties: [(String, BusValue)] {
    [
      ("Locked", .bool(false)), ("Attributes", SecretServiceServer.dictionary(attributes)),
      ("Label", .string(label)), ("Type", .string(attributes[SecretSchema.attribute]?.string ?? "")),
      ("Created", SecretServiceServer.time(created)), ("Modified", SecretServiceServer.time(modified)),
    ]
  }
}
