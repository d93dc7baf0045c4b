import BusServer
import Model
import SecretMemory
import SecretServiceProtocol
import Store
import Tree

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

  /// The item that has just these attributes, as they are or but for libsecret's schema for none, else the one of the same service and account (or server and user) that
  /// the attributes find. An item of the class `other` with further attributes is another item.
  private func itemToReplace(_ wanted: WantedItem) throws(ProtocolError) -> Item? {
    let present = try search(wanted.attributes, in: wanted.collection)
    if let same = present.first(where: { StoredAttributes.attributes(of: $0) == wanted.attributes }) {
      return same
    }
    let plain = wanted.attributes.withoutGenericSchema
    if let same = present.first(where: { StoredAttributes.attributes(of: $0).withoutGenericSchema == plain })
    {
      return same
    }
    let read = ServiceItem(label: wanted.label, attributes: wanted.attributes)
    let identity = read.item(ItemID(rawValue: ""), isOfClient: true).identity
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
