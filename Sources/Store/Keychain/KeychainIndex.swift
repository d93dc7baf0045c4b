public import Model

/// Every item of a keychain without its secret, by id, by identity and by folder.
public struct KeychainIndex: Sendable {
  private var items: [ItemID: Item] = [:]
  private var byIdentity: [ItemIdentity: [ItemID]] = [:]
  private var byFolder: [ItemClass: [ExactString: Set<ItemID>]] = [:]
  /// Keeps the rules of folders; it is not among the items.
  private(set) var rulesItem: Item?

  init(_ items: [Item] = []) {
    self.items.reserveCapacity(items.count)
    byIdentity.reserveCapacity(items.count)
    for item in items { insert(item) }
  }

  /// The number of items.
  public var count: Int { items.count }

  /// The item with the keychain's own name; nil: there is none.
  public subscript(id: ItemID) -> Item? { items[id] }

  /// The items with one identity, the oldest first: only a Secret Service has more than one.
  public subscript(identity: ItemIdentity) -> [Item] {
    guard let ids = byIdentity[identity] else { return [] }
    let found = ids.compactMap { items[$0] }
    guard found.count > 1 else { return found }
    return found.sorted { ($0.created, $0.id.rawValue) < ($1.created, $1.id.rawValue) }
  }

  /// The oldest of the items with one identity; nil: there is none.
  func first(_ identity: ItemIdentity) -> Item? {
    guard let ids = byIdentity[identity], let first = ids.first else { return nil }
    return ids.count == 1 ? items[first] : self[identity].first
  }

  /// The services, servers or labels of a class.
  public func folders(of itemClass: ItemClass) -> [ExactString] {
    byFolder[itemClass].map { Array($0.keys) } ?? []
  }

  /// Whether a class has an item of this service, server or label.
  public func hasFolder(_ folder: ExactString, of itemClass: ItemClass) -> Bool {
    byFolder[itemClass]?[folder] != nil
  }

  /// The number of services, servers or labels that items of the class have.
  public func countOfFolders(of itemClass: ItemClass) -> Int { byFolder[itemClass]?.count ?? 0 }

  /// The number of items of a service, server or label.
  public func countOfItems(in folder: ExactString, of itemClass: ItemClass) -> Int {
    byFolder[itemClass]?[folder]?.count ?? 0
  }

  /// The items of a service, server or label.
  public func items(in folder: ExactString, of itemClass: ItemClass) -> [Item] {
    (byFolder[itemClass]?[folder] ?? []).compactMap { items[$0] }
  }

  /// Every item, in no particular order.
  public var all: some Collection<Item> { items.values }
}

extension KeychainIndex {
  /// Returns what stood there before.
  @discardableResult
  mutating func insert(_ item: Item) -> Item? {
    guard item.identity != .rules else {
      rulesItem = item
      return nil
    }
    let old = remove(item.id)
    items[item.id] = item
    byIdentity[item.identity, default: []].append(item.id)
    byFolder[item.identity.itemClass, default: [:]][item.identity.folder, default: []].insert(item.id)
    return old
  }

  @discardableResult
  mutating func remove(_ id: ItemID) -> Item? {
    if rulesItem?.id == id { rulesItem = nil }
    guard let item = items.removeValue(forKey: id) else { return nil }
    byIdentity[item.identity]?.removeAll { $0 == id }
    if byIdentity[item.identity]?.isEmpty == true { byIdentity[item.identity] = nil }
    removeFromFolder(item)
    return item
  }

  private mutating func removeFromFolder(_ item: Item) {
    let itemClass = item.identity.itemClass
    let folder = item.identity.folder
    byFolder[itemClass]?[folder]?.remove(item.id)
    if byFolder[itemClass]?[folder]?.isEmpty == true { byFolder[itemClass]?[folder] = nil }
  }
}

extension KeychainIndex {
  /// Takes over what happened to one item; empty: nothing that shows.
  mutating func take(_ news: ItemNews) -> [Change] {
    let old = news.item.map { insert($0) } ?? remove(news.id)
    guard news.item?.identity != .rules else { return [] }
    switch (news.item, old) {
    case (let item?, let old?): return item.changes(since: old, origin: news.origin)
    case (let item?, nil): return item.creation(origin: news.origin)
    case (nil, let old?): return old.deletion(origin: news.origin)
    case (nil, nil): return []
    }
  }

  /// The changes by others between `previous` and this one.
  func changes(since previous: KeychainIndex) -> [Change] {
    var changes: [Change] = []
    for item in items.values {
      guard let old = previous.items[item.id] else {
        changes += item.creation(origin: .external)
        continue
      }
      changes += item.changes(since: old, origin: .external)
    }
    for old in previous.items.values where items[old.id] == nil {
      changes += old.deletion(origin: .external)
    }
    return changes
  }
}

extension Item {
  fileprivate func creation(origin: Change.Origin) -> [Change] {
    [Change(.created, .item(id, identity), origin: origin)] + changesOfOtpauth(since: nil, origin: origin)
  }

  /// Its files go before their directory.
  func deletion(origin: Change.Origin) -> [Change] {
    let further = otpauth == nil ? [] : [Change(.deleted, .otpauth(id, identity), origin: origin)]
    return further + [Change(.deleted, .item(id, identity), origin: origin)]
  }

  fileprivate func changes(since old: Item, origin: Change.Origin) -> [Change] {
    (change(since: old, origin: origin).map { [$0] } ?? []) + changesOfOtpauth(since: old, origin: origin)
  }

  /// A moved URI is not told of: its directory is.
  func changesOfOtpauth(since old: Item?, origin: Change.Origin) -> [Change] {
    guard otpauth != old?.otpauth else { return [] }
    let kind: Change.Kind = otpauth == nil ? .deleted : old?.otpauth == nil ? .created : .modified
    return [Change(kind, .otpauth(id, identity), origin: origin)]
  }

  /// nil: nothing that shows, but for its `otpauth:` URI.
  private func change(since old: Item, origin: Change.Origin) -> Change? {
    var old = old
    old.otpauth = otpauth
    guard self != old else { return nil }
    let subject = Change.Subject.item(id, identity)
    if identity != old.identity {
      return Change(.moved, subject, previous: .item(id, old.identity), origin: origin)
    }
    let sameSecret = modified == old.modified && size == old.size
    return Change(sameSecret ? .attributes : .modified, subject, origin: origin)
  }
}

extension ItemIdentity {
  /// The name of the folder that holds the item: service, server or label.
  public var folder: ExactString {
    switch self {
    case .generic(let service, _): service
    case .internet(let identity): identity.server
    case .other(let label): label
    }
  }
}
