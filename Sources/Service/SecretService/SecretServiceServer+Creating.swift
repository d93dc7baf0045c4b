import BusServer
import Model
import SecretMemory
import SecretServiceProtocol
import Store

/// An item as a client wants it to be.
struct WantedItem: Sendable {
  var label: String
  var attributes: StoredAttributes.Attributes
  var secret: BusBytes
  var contentType: String
  var collection: ServiceObject.Collection
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
    // Before anything is done with them on the thread of the bus.
    guard entries.reduce(0, { $0 + $1.0.utf8.count + $1.1.utf8.count }) <= StoredAttributes.mostBytes else {
      throw .invalid("an item has at most \(StoredAttributes.mostBytes) bytes of attributes")
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

  private func createInMemory(_ wanted: WantedItem, _ replaces: Bool) throws(ProtocolError) -> [BusValue] {
    let now = Timestamp.now.seconds
    let replaced =
      replaces ? memory.names.first { memory[$0]?.attributes == wanted.attributes } : nil
    let name = replaced ?? "\(nextNumber())"
    let created = replaced.flatMap { memory[$0]?.created } ?? now
    let entry = SessionCollection.Entry(
      label: wanted.label, attributes: wanted.attributes, secret: wanted.secret,
      contentType: wanted.contentType, created: created, modified: now)
    try memory.requireRoom(for: entry, as: name)
    memory[name] = entry
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
