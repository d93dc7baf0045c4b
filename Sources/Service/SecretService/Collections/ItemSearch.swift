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
        let own = StoredAttributes.attributes(of: item)
        return attributes.allSatisfy { own[$0.key] == $0.value }
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
