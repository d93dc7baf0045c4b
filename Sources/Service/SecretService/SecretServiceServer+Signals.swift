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

  func publish(_ change: Change) {
    switch (change.kind, change.subject) {
    case (.locked, _), (.unlocked, _): publishLock()
    case (.overflow, _):
      index = nil
      publishCollection([:])
    case (_, .item(let id, _)): publish(change.kind, id)
    default: break
    }
  }

  private func publish(_ kind: Change.Kind, _ id: ItemID) {
    if kind == .deleted {
      index?.remove(id)
      emit(.login, "ItemDeleted", Self.path(of: id))
      return
    }
    guard (try? learn(id)) == true else { return }
    emit(.login, kind == .created ? "ItemCreated" : "ItemChanged", Self.path(of: id))
  }

  /// Takes over what the keychain has of an item. False: it has no such item.
  @discardableResult
  func learn(_ id: ItemID) throws(ProtocolError) -> Bool {
    guard let item = try here({ () throws(StoreError) in try keychain.item(id) }), !item.identity.isSeal
    else {
      index?.remove(id)
      return false
    }
    index?.insert(item)
    return true
  }

  /// Permits that were given in prompts end with the lock.
  private func publishLock() {
    let isLocked = keychain.engine.locking.lockState != .open
    if isLocked { for name in clients.keys { clients[name]?.permits = [:] } }
    publishCollection(["Locked": .bool(isLocked)])
  }

  func publishCollection(_ changed: [String: BusValue]) {
    let object = ServiceObject.collection(.login)
    connection?.emit(
      object.path, Self.properties, "PropertiesChanged",
      [.string(object.interface), .properties(changed.map { ($0, $1) }), Self.names([])])
    connection?.emit(
      ServiceObject.service.path, ServiceObject.service.interface, "CollectionChanged", [.path(object.path)])
  }
}
