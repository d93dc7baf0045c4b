public import Model

/// A keychain that finds an item without reading the others.
public protocol LookupKeychain: Sendable {
  /// The items with an identity, the oldest first, as they are stored now.
  ///
  /// - Throws: `locked` for a keychain that was never unlocked; `damaged`, `unreachable`.
  func items(with identity: ItemIdentity) throws(StoreError) -> [Item]

  /// The item with the keychain's own name as it is stored now; nil: there is none.
  ///
  /// - Throws: as `items(with:)`.
  func item(_ id: ItemID) throws(StoreError) -> Item?
}
