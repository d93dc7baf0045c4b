import Model
import Store

// The signals of the service.
extension SecretServiceClient {
  func listen(to bus: Bus) {
    let hear: @Sendable (Bus.Signal) -> Void = { [weak self] signal in
      self?.assumeIsolated { $0.hear(signal) }
    }
    bus.subscribe(
      sender: "org.freedesktop.DBus", interface: "org.freedesktop.DBus", member: "NameOwnerChanged",
      firstArgument: ServiceName.bus, hear)
    bus.subscribe(sender: ServiceName.bus, interface: ServiceName.service, hear)
    bus.subscribe(sender: ServiceName.bus, interface: ServiceName.collection, hear)
    bus.subscribe(
      sender: ServiceName.bus, interface: ServiceName.properties, member: "PropertiesChanged", hear)
  }

  private func hear(_ signal: Bus.Signal) {
    let first = signal.arguments[0]?.string ?? ""
    switch (signal.interface, signal.member) {
    case (_, "NameOwnerChanged"): hearOwner(signal.arguments[2]?.string ?? "")
    case (ServiceName.service, "CollectionDeleted"): dropCollection(first)
    case (ServiceName.service, _): dirty.collections.insert(first)
    case (ServiceName.collection, "ItemDeleted"): hearRemoval(of: first)
    case (ServiceName.collection, _): hearItem(first)
    case (ServiceName.properties, _): hearProperties(first, signal.path, signal.arguments[1])
    default: break
    }
    pump()
  }

  private func hearOwner(_ new: String) {
    guard new != owner else { return }
    owner = new.isEmpty ? nil : new
    session = nil
    dirty.everything = !new.isEmpty && loadedOwner != nil
    forgetLocks()
    guard !new.isEmpty, loadedOwner == nil else { return }
    Task(executorPreference: loop) { [weak self] in try? await self?.learnLocks(before: Self.patience) }
  }

  private func hearItem(_ path: String) {
    let isOwn = locks.isHeld(path) || (locks.isAdding && ledger[ItemID(rawValue: path)] == nil)
    if isOwn { postponed.insert(path) } else { dirty.items.insert(path) }
  }

  private func hearRemoval(of path: String) {
    guard !locks.isHeld(path) else { return }
    dirty.items.remove(path)
    if ledger.remove(ItemID(rawValue: path), origin: .external) { announce() }
  }

  /// Locking tells of every item; that needs no reading.
  private func hearProperties(_ interface: String, _ path: String, _ changed: Variant?) {
    let isLocked = changed?["Locked"]?.bool
    switch interface {
    case ServiceName.collection:
      if let isLocked { hearLock(of: path, isLocked) }
    case ServiceName.item:
      if let isLocked { ledger.setLocked(isLocked, ItemID(rawValue: path)) }
      if changed?.entries.contains(where: { $0.key != "Locked" }) == true { hearItem(path) }
    default: break
    }
  }

  func hearLock(of path: String, _ isLocked: Bool) {
    let known = collections[path]
    // The items first: a listener to the collection looks at them.
    for id in ledger.ids where id.collection == path { ledger.setLocked(isLocked, id) }
    collections[path]?.isLocked = isLocked
    if !isLocked || known == nil { dirty.collections.insert(path) }
  }

  func dropCollection(_ path: String) {
    collections[path] = nil
    dirty.collections.remove(path)
    for id in ledger.ids where id.collection == path {
      if ledger.remove(id, origin: .external) { announce() }
    }
  }
}

extension ItemID {
  /// The path of the collection that an item's path stands in.
  var collection: String {
    rawValue.lastIndex(of: "/").map { String(rawValue[..<$0]) } ?? rawValue
  }
}
