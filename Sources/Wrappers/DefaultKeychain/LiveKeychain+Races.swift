package import FoundationEssentials
package import Model

// An item that a query finds may be gone, and one that it does not find may be there, by the time it is used: other
// threads and processes change the keychain, too. Each of these looks again then.
extension LiveKeychain {
  /// Each attempt that fails means that another thread or process has succeeded in between.
  private static let attempts = 100

  /// The oldest item that a query matches, with its secret; nil: there is none.
  package func first(_ query: ItemQuery) throws(StoreError) -> (item: Item, secret: Data)? {
    try retrying(query) { () throws(StoreError) in
      guard let item = try items(query).first else { return nil }
      return (item, try secret(of: item.id))
    }
  }

  /// Stores a secret in the oldest item that a query matches, or in a new one if there is none.
  ///
  /// `change` sets what the item has beside its identity, and may be called more than once.
  package func save(
    _ query: ItemQuery, secret: Data, _ change: (inout Item) throws(StoreError) -> Void = { _ in }
  ) throws(StoreError) {
    try retrying(query) { () throws(StoreError) in
      if let item = try items(query).first {
        try rewrite(item.id, secret: secret, change)
      } else {
        try add(query, secret: secret, change)
      }
    }
  }

  /// Stores a secret in a new item if a query matches none; false: there is one, and it stays as it is.
  package func saveFirst(_ query: ItemQuery, secret: Data) throws(StoreError) -> Bool {
    try unlockingOnDemand(query) { () throws(StoreError) in
      guard try items(query).isEmpty else { return false }
      do throws(StoreError) {
        try add(query, secret: secret) { _ in }
        return true
      } catch {
        guard case .exists = error else { throw error }
        return false
      }
    }
  }

  /// Removes every item that a query matches; none is no error.
  package func removeAll(_ query: ItemQuery) throws(StoreError) {
    try retrying(query) { () throws(StoreError) in try remove(items(query).map(\.id)) }
  }

  private func retrying<Value>(
    _ query: ItemQuery, _ body: () throws(StoreError) -> Value
  ) throws(StoreError) -> Value {
    try unlockingOnDemand(query) { () throws(StoreError) in try retrying(body) }
  }

  private func retrying<Value>(_ body: () throws(StoreError) -> Value) throws(StoreError) -> Value {
    for _ in 1..<Self.attempts {
      do throws(StoreError) {
        return try body()
      } catch {
        guard error.isLostRace else { throw error }
      }
    }
    return try body()
  }
}

extension StoreError {
  /// The item was added, or removed, since it was looked for.
  fileprivate var isLostRace: Bool {
    switch self {
    case .exists, .notFound: true
    default: false
    }
  }
}
