public import Model

/// A keychain of so many items that they are read by pages, beside its other calls.
public protocol PagingKeychain: Sendable {
  /// Begins to read every item as they are at this moment, which takes some milliseconds. - Throws: `locked`, `unreachable`.
  func beginReading() throws(StoreError) -> any ItemReading
}

/// All items of a keychain as they were at one moment. For one caller at a time; no other call of the keychain waits for it.
public protocol ItemReading: Sendable {
  /// The next items; empty: there are no more.
  ///
  /// - Throws: `interrupted`, `unreachable`, `damaged`: the reading has to be begun again.
  func next() throws(StoreError) -> [Item]

  /// Called after the last page: from now on the keychain's `changes` are those of all items.
  ///
  /// - Returns: What has changed since the reading began, also by the keychain's own calls.
  /// - Throws: `interrupted` where the keychain was opened again meanwhile; as `KeychainEngine.items`.
  func finish() throws(StoreError) -> ExternalChanges
}

/// A keychain that can compare all that it holds with what was stored, beside its other calls.
public protocol VerifiableKeychain: Sendable {
  /// Compares everything. What it has found shows in `trust` and `problems`, and `changes` reports it.
  ///
  /// - Throws: `interrupted`, `locked`, `unreachable`, `damaged`: not everything was compared.
  func verify() throws(StoreError)
}
