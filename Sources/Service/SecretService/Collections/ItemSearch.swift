import Model
import SecretServiceProtocol
import Store

/// A search for items by their attributes, which may run on any thread.
struct ItemSearch: Sendable {
  /// So many items at most are looked at on the thread of the bus.
  static let mostAtOnce = 256

  let keychain: KeychainStore
  let attributes: StoredAttributes.Attributes
  /// nil: all.
  let collection: ServiceObject.Collection?
  /// The items that may have the attributes.
  let candidates: [ItemID]

  /// The items of the keychain that have the attributes, the last changed first.
  func items() throws(StoreError) -> [Item] {
    guard !candidates.isEmpty else { return [] }
    return try keychain.read { index in candidates.compactMap { index[$0] } }
      .filter { item in
        guard collection == nil || StoredAttributes.collection(of: item) == collection else { return false }
        guard !attributes.isEmpty else { return true }
        return StoredAttributes.attributes(of: item).has(attributes)
      }
      .sorted { ($0.modified, $0.id.rawValue) > ($1.modified, $1.id.rawValue) }
  }
}

/// Whether a client may have the secrets of items, found on any thread.
struct ItemAccess: Sendable {
  let keychain: KeychainStore
  /// The items for which a person has agreed.
  let permitted: Set<ItemID>
  let caller: Caller

  /// Whether the client gets the secret without a question.
  func isOpen(_ item: Item) -> Bool {
    guard keychain.engine.locking.isAccessible(item) else { return false }
    if permitted.contains(item.id) { return true }
    // Most items have neither flags nor rules; the process is looked at for the others only.
    return (try? keychain.isRestricted(item, for: caller.identity())) == false
  }
}

/// The items of a collection of the keychain, which any thread may describe.
struct CollectionContents: Sendable {
  let keychain: KeychainStore
  let collection: ServiceObject.Collection
  /// When a client made it, in seconds since 1970; nil: none did.
  let created: Int64?
  let items: [ItemID]

  func paths() -> [String] { items.map { SecretServiceServer.path(of: $0, in: collection) }.sorted() }

  /// Those of the oldest item and of the last change; a collection that a client has made is as old as that.
  func times() throws(StoreError) -> (created: Int64, modified: Int64) {
    try keychain.read { index in
      var (oldest, newest) = (created ?? .max, created ?? 0)
      for item in items.compactMap({ index[$0] }) {
        oldest = min(oldest, item.created.seconds)
        newest = max(newest, item.modified.seconds)
      }
      return (created ?? (oldest == .max ? 0 : oldest), newest)
    }
  }
}

extension StoredAttributes.Attributes {
  /// Whether an item with these attributes is found by others. One without a schema is found by libsecret's schema for none too,
  /// which keyrings give such an item, and which programs search for.
  func has(_ wanted: StoredAttributes.Attributes) -> Bool {
    wanted.allSatisfy { name, value in
      self[name] == value
        || (name == SecretSchema.attribute && value == SecretSchema.none && self[name] == nil)
    }
  }

  /// Without libsecret's schema for none.
  var withoutGenericSchema: StoredAttributes.Attributes {
    guard self[SecretSchema.attribute] == SecretSchema.none else { return self }
    return filter { $0.key != SecretSchema.attribute }
  }
}
