public import Model

/// A keychain that answers for one item without reading the others.
public protocol ItemLookup: Sendable {
  /// The item with an identity, as it is stored now; nil: there is none. - Throws: `locked`, `damaged`, `unreachable`.
  func item(with identity: ItemIdentity) throws(StoreError) -> Item?

  /// The item with the keychain's own name, as it is stored now; nil: there is none. - Throws: as `item(with:)`.
  func item(_ id: ItemID) throws(StoreError) -> Item?
}
