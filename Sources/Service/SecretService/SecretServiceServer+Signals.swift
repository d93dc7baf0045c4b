import BusServer
import Model
import SecretServiceProtocol
import Store

// Signals for what has changed, on whatever interface.

extension SecretServiceServer {
  private static let properties = "org.freedesktop.DBus.Properties"

  /// A signal of a collection about one of its items.
  func emit(_ collection: ServiceObject.Collection, _ member: String, _ item: String) {
    let object = ServiceObject.collection(collection)
    connection?.emit(object.path, object.interface, member, [.path(item)])
    guard member != "ItemChanged" else {
      connection?.emit(
        item, Self.properties, "PropertiesChanged",
        [
          .string("org.freedesktop.Secret.Item"), .properties([]),
          Self.names(["Attributes", "Label", "Modified"]),
        ])
      return
    }
    // The list of all items is asked for by those who want it.
    connection?.emit(
      object.path, Self.properties, "PropertiesChanged",
      [.string(object.interface), .properties([]), Self.names(["Items"])])
  }

  private static func names(_ names: [String]) -> BusValue { .array(names.map { .string($0) }, of: "s") }

  func publish(_ change: Change) async {
    if index == nil { noteChangeWithoutIndex(change) }
    switch (change.kind, change.subject) {
    case (.locked, _): publishLock()
    case (.unlocked, _):
      await prepareIndex()
      publishLock()
    case (.overflow, _):
      (index, further) = (nil, nil)
      announceCollections()
      for collection in collections where collection != .session { publishCollection(collection, [:]) }
    case (_, .item(let id, _)): publish(change.kind, id)
    case (_, .document(_, FurtherCollections.document)):
      further = nil
      announceCollections()
    default: break
    }
  }

  private func noteChangeWithoutIndex(_ change: Change) {
    if case .item = change.subject { changesWithoutIndex += 1 }
    if change.kind == .overflow { changesWithoutIndex += 1 }
  }

  private func publish(_ kind: Change.Kind, _ id: ItemID) {
    guard kind != .deleted else { return publishRemoval(of: id) }
    let former = index?.collection(of: id)
    guard let item = (try? learn(id)) ?? nil else {
      if let former { emit(former, "ItemDeleted", Self.path(of: id, in: former)) }
      return
    }
    let collection = StoredAttributes.collection(of: item)
    if collection != .login || former != collection { announceCollections() }
    if let former, former != collection {
      emit(former, "ItemDeleted", Self.path(of: id, in: former))
      emit(collection, "ItemCreated", Self.path(of: id, in: collection))
    } else {
      emit(
        collection, kind == .created ? "ItemCreated" : "ItemChanged", Self.path(of: id, in: collection))
    }
  }

  /// Emits the signal once for an item. Before the items have been read, an item that is gone counts as one of `login`.
  func publishRemoval(of id: ItemID) {
    guard let collection = index == nil ? .login : index?.collection(of: id) else { return }
    index?.remove(id)
    emit(collection, "ItemDeleted", Self.path(of: id, in: collection))
    if collection != .login { announceCollections() }
  }

  /// Takes over what the keychain has of an item. nil: it has no such item.
  @discardableResult
  func learn(_ id: ItemID) throws(ProtocolError) -> Item? {
    guard let item = try here({ () throws(StoreError) in try keychain.item(id) }), !item.identity.isSeal
    else {
      index?.remove(id)
      return nil
    }
    index?.insert(item)
    return item
  }

  /// Permits that were given in prompts end with the lock.
  private func publishLock() {
    let isLocked = keychain.engine.locking.lockState != .open
    if isLocked { for name in clients.keys { clients[name]?.dropPermits() } } else { takeOverLabel() }
    further = nil
    announceCollections()
    for collection in collections where collection != .session {
      publishCollection(
        collection, ["Locked": .bool(isLocked), "Label": .string(label(of: collection))])
    }
  }

  func publishCollection(_ collection: ServiceObject.Collection, _ changed: [String: BusValue]) {
    let object = ServiceObject.collection(collection)
    connection?.emit(
      object.path, Self.properties, "PropertiesChanged",
      [.string(object.interface), .properties(changed.map { ($0, $1) }), Self.names([])])
    emitOfService("CollectionChanged", collection)
  }

  /// A signal of the service about one of its collections.
  func emitOfService(_ member: String, _ collection: ServiceObject.Collection) {
    let (service, path) = (ServiceObject.service, ServiceObject.collection(collection).path)
    connection?.emit(service.path, service.interface, member, [.path(path)])
  }

  /// Collections have come or gone.
  func publishList() {
    let service = ServiceObject.service
    let paths = collections.map { ServiceObject.collection($0).path }
    connection?.emit(
      service.path, Self.properties, "PropertiesChanged",
      [.string(service.interface), .properties([("Collections", .paths(paths))]), Self.names([])])
  }
}
