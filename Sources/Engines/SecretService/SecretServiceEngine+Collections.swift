public import Model
public import Store

extension SecretServiceEngine: CollectionKeychain {
  /// The service itself.
  public var collections: (any CollectionKeychain)? { self }

  /// Asks the service. - Throws: `unreachable`.
  public func lockedCollections() throws(StoreError) -> [String] {
    try wait { keyring, deadline throws(StoreError) in try await keyring.lockedLabels(before: deadline) }
  }

  /// Asks the service for the alias `default`. - Throws: `unreachable`.
  public func defaultCollection() throws(StoreError) -> ExactString? {
    let path = try wait { keyring, deadline throws(StoreError) in
      try await keyring.defaultCollection(before: deadline)
    }
    return path.map { ItemID(rawValue: $0 + "/1").collectionName }
  }
}
