public import Model

/// A keychain whose items are in collections, each with a lock of its own: a Secret Service.
public protocol CollectionKeychain: Sendable {
  /// The labels of the collections that are locked now, but for the one that ends with the login session: what is in them is not known.
  ///
  /// - Throws: `unreachable`.
  func lockedCollections() throws(StoreError) -> [String]

  /// The name of the collection that clients store in, as `Item.collection` has it; nil: there is none. - Throws: `unreachable`.
  func defaultCollection() throws(StoreError) -> ExactString?
}
