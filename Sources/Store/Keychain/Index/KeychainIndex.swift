public import Model

/// Every item of a keychain without its secret, by id, by identity and by folder.
///
/// Items are packed, so that a hundred thousand of them are some tens of megabytes; each that is asked for is unpacked.
public struct KeychainIndex: Sendable {
  /// Each at its slot, without gaps.
  private var items: [PackedItem] = []
  /// For each slot, where it stands in its folder.
  private var places: [UInt32] = []
  private var byID = SlotTable()
  private var byIdentity = SlotTable()
  private var byFolder: [ItemClass: [ExactString: FolderSlots]] = [:]
  /// Keeps the rules of folders; it is not among the items.
  private(set) var rulesItem: Item?
  /// The items that hold sealed documents, by the documents' names; they are not among the items.
  private(set) var documentItems: [ExactString: Item] = [:]
  /// The item that `first` found last, until an item changes: a program calls the kernel several times about one item.
  private var recent: Item?
  private var latest = LatestChanges()

  init(_ items: [Item] = []) {
    self.items.reserveCapacity(items.count)
    for item in items { insert(item) }
  }

  /// The number of items.
  public var count: Int { items.count }

  /// The item with the keychain's own name; nil: there is none.
  public subscript(id: ItemID) -> Item? { packed(id)?.item }

  func packed(_ id: ItemID) -> PackedItem? { slot(PackedKey(id)).map { items[$0] } }

  private func slot(_ id: PackedKey) -> Int? { byID.first(id.hash) { items[$0].has(id) } }

  /// The items with one identity, the oldest first: only a Secret Service has more than one.
  public subscript(identity: ItemIdentity) -> [Item] {
    let key = PackedKey(identity)
    let found = byIdentity.all(key.hash) { items[$0].has(key) }.map { items[$0].item }
    guard found.count > 1 else { return found }
    return found.sorted { ($0.created, $0.id.rawValue) < ($1.created, $1.id.rawValue) }
  }

  /// The oldest of the items with one identity; nil: there is none.
  ///
  /// Without an array: each call of the kernel about an item comes here.
  mutating func first(_ identity: ItemIdentity) -> Item? {
    if let recent, recent.identity == identity { return recent }
    recent = find(identity)
    return recent
  }

  private func find(_ identity: ItemIdentity) -> Item? {
    let key = PackedKey(identity)
    var found: Int?
    let second = byIdentity.first(key.hash) { slot in
      guard items[slot].has(key) else { return false }
      defer { found = found ?? slot }
      return found != nil
    }
    guard second == nil else { return self[identity].first }
    return found.map { items[$0].item(identity, key) }
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
    byFolder[itemClass]?[folder]?.slots.map { items[Int($0)].item } ?? []
  }

  /// When the items of a service, server or label were changed last, or without one those of a class; nil: there are none.
  mutating func latestChange(in folder: ExactString?, of itemClass: ItemClass) -> Timestamp? {
    if let known = latest[folder, itemClass] { return known }
    guard let folders = byFolder[itemClass] else { return nil }
    var found: Timestamp?
    func add(_ folder: FolderSlots) {
      for slot in folder.slots {
        let modified = items[Int(slot)].modified
        if found.map({ $0 < modified }) ?? true { found = modified }
      }
    }
    // Those of a class's folders are not kept: a keychain may have as many folders as items.
    if let folder { folders[folder].map(add) } else { folders.values.forEach(add) }
    latest[folder, itemClass] = found
    return found
  }

  /// Every item, in no particular order.
  public var all: some Collection<Item> { items.lazy.map(\.item) }

  /// The same, packed.
  var allPacked: [PackedItem] { items }
}

extension KeychainIndex {
  /// Returns what stood there before.
  @discardableResult
  mutating func insert(_ item: Item) -> Item? {
    recent = nil
    guard item.identity != .rules else {
      rulesItem = item
      return nil
    }
    guard !item.identity.isDocument else { return insertDocument(item) }
    let id = PackedKey(item.id)
    guard let slot = slot(id) else {
      append(item, id)
      return nil
    }
    let old = items[slot].item
    if old.identity == item.identity {
      items[slot] = PackedItem(item)
      latest.replace(old, by: item)
    } else {
      remove(slot, old)
      append(item, id)
    }
    return old
  }

  private mutating func insertDocument(_ item: Item) -> Item? {
    let old = removeDocument(item.id)
    if let name = item.identity.documentName { documentItems[name] = item }
    return old
  }

  private mutating func removeDocument(_ id: ItemID) -> Item? {
    guard let name = documentItems.first(where: { $0.value.id == id })?.key else { return nil }
    return documentItems.removeValue(forKey: name)
  }

  private mutating func append(_ item: Item, _ id: PackedKey) {
    let slot = items.count
    items.append(PackedItem(item))
    latest.insert(item)
    byID.insert(slot, id.hash)
    byIdentity.insert(slot, PackedKey(item.identity).hash)
    let (itemClass, folder) = (item.identity.itemClass, item.identity.folder)
    places.append(byFolder[itemClass, default: [:]][folder, default: .none].append(slot))
  }

  @discardableResult
  mutating func remove(_ id: ItemID) -> Item? {
    recent = nil
    if rulesItem?.id == id { rulesItem = nil }
    if let document = removeDocument(id) { return document }
    guard let slot = slot(PackedKey(id)) else { return nil }
    let item = items[slot].item
    remove(slot, item)
    return item
  }

  private mutating func remove(_ slot: Int, _ item: Item) {
    byID.remove(slot, PackedKey(item.id).hash)
    byIdentity.remove(slot, PackedKey(item.identity).hash)
    removeFromFolder(slot, item.identity)
    latest.remove(item)
    moveLast(to: slot)
    _ = items.popLast()
    _ = places.popLast()
  }

  private mutating func removeFromFolder(_ slot: Int, _ identity: ItemIdentity) {
    let (itemClass, folder) = (identity.itemClass, identity.folder)
    if let moved = byFolder[itemClass]?[folder]?.remove(at: places[slot]) {
      places[Int(moved)] = places[slot]
    }
    if byFolder[itemClass]?[folder]?.count == 0 { byFolder[itemClass]?[folder] = nil }
  }

  /// Fills the gap of a slot with the item of the last one.
  private mutating func moveLast(to slot: Int) {
    let last = items.count - 1
    guard slot < last else { return }
    let identity = items[last].identity
    byID.replace(last, by: slot, PackedKey(items[last].id).hash)
    byIdentity.replace(last, by: slot, PackedKey(identity).hash)
    byFolder[identity.itemClass]?[identity.folder]?.replace(at: places[last], by: slot)
    (items[slot], places[slot]) = (items[last], places[last])
  }
}

extension KeychainIndex {
  /// Takes over what happened to one item; empty: nothing that shows.
  mutating func take(_ news: ItemNews) -> [Change] {
    let old = news.item.map { insert($0) } ?? remove(news.id)
    guard news.item?.identity != .rules else { return [Change(.attributes, .keychain, origin: news.origin)] }
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
    for packed in allPacked {
      let old = previous.packed(packed.id)
      guard packed != old else { continue }
      let item = packed.item
      changes +=
        old.map { item.changes(since: $0.item, origin: .external) } ?? item.creation(origin: .external)
    }
    for old in previous.allPacked where self.packed(old.id) == nil {
      changes += old.item.deletion(origin: .external)
    }
    return changes + changesOfDocuments(since: previous)
  }
}

extension KeychainIndex {
  private func changesOfDocuments(since previous: KeychainIndex) -> [Change] {
    let old = Dictionary(previous.documentItems.values.map { ($0.id, $0) }) { first, _ in first }
    let new = Dictionary(documentItems.values.map { ($0.id, $0) }) { first, _ in first }
    let gone = old.values.filter { new[$0.id] == nil }.flatMap { $0.deletion(origin: .external) }
    return gone
      + new.values.flatMap { item in
        old[item.id].map { item.changes(since: $0, origin: .external) } ?? item.creation(origin: .external)
      }
  }
}

extension Item {
  /// The item, or the sealed document that it holds.
  var subject: Change.Subject {
    identity.documentName.map { .document(id, $0) } ?? .item(id, identity)
  }

  func creation(origin: Change.Origin) -> [Change] {
    [Change(.created, subject, origin: origin)] + changesOfOtpauth(since: nil, origin: origin)
  }

  /// Its files go before their directory.
  func deletion(origin: Change.Origin) -> [Change] {
    let further = otpauth == nil ? [] : [Change(.deleted, .otpauth(id, identity), origin: origin)]
    return further + [Change(.deleted, subject, origin: origin)]
  }

  func changes(since old: Item, origin: Change.Origin) -> [Change] {
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
    if identity != old.identity { return Change(.moved, subject, previous: old.subject, origin: origin) }
    if identity.isDocument { return SealedDocument.change(self, since: old, origin) }
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
