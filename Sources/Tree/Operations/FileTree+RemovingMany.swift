public import Model
import Store
import Synchronization

extension FileTree {
  /// Deletes keys, and items with all their secrets: the items in one transaction, the keys of each suite in one. What is gone
  /// already is no error. As `remove(_:in:)`, it asks nothing.
  ///
  /// - Throws: `notPermitted` for nodes of other kinds, before anything is deleted; what the stores throw. Keys of other suites
  ///   may be deleted then.
  public func remove(_ nodes: [Node]) throws(StoreError) {
    var items: [ItemPlace] = []
    var keys: [ExactString: [KeyPlace]] = [:]
    for node in nodes {
      switch node.place {
      case .item(let item): items.append(item)
      case .key(let key): keys[key.suite, default: []].append(key)
      default: throw .notPermitted(reason: "only keys and items are removed together")
      }
    }
    nodes.forEach { keepStatus(of: $0) }
    try removeItems(items)
    for (suite, keys) in keys { try removeKeys(keys, of: suite) }
    self.nodes.withLock { table in
      for node in nodes { table.remove(node, at: node.place) }
    }
  }

  private func removeItems(_ places: [ItemPlace]) throws(StoreError) {
    guard !places.isEmpty else { return }
    var ids: [ItemID] = []
    for place in places {
      if let item = try storedItem(place) { ids.append(item.id) }
    }
    if !ids.isEmpty { try requireKeychain().remove(ids) }
    overlay.withLock { overlay in
      for place in places { overlay.dropAll(of: place) }
    }
  }

  private func removeKeys(_ places: [KeyPlace], of suite: ExactString) throws(StoreError) {
    try settings.suite(suite).update { (contents) throws(StoreError) in
      for place in places { contents.settings.removeValue(forKey: place.key) }
    }
    overlay.withLock { overlay in
      for place in places { overlay.dropAll(of: place) }
    }
  }
}

extension Overlay {
  /// Drops what waits for the secrets of an item.
  fileprivate mutating func dropAll(of item: ItemPlace) {
    stagedItems[item] = nil
    for place in [Place.value(item), .otpauth(item)] {
      pending[place] = nil
      setAside[place] = nil
    }
  }

  fileprivate mutating func dropAll(of key: KeyPlace) {
    pending[.key(key)] = nil
    setAside[.key(key)] = nil
    emptyTypes[key] = nil
  }
}
