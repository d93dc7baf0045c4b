public import Model

/// A keychain served by another process: calls may block; changes arrive asynchronously.
///
/// Every call of its engine may come from any thread at any time, and ends within ten seconds, with `unreachable` where the
/// other process does not answer, but for the time in which one that decides asks a person. `known`, `takeNews`, and the
/// lock's `lockState` and `isAccessible` answer from memory.
public protocol RemoteKeychain: Sendable {
  /// Every item as it is known now, from memory; empty before `items` was called.
  var known: [Item] { get }

  /// One of them.
  func known(_ item: ItemID) -> Item?

  /// The changes since the last call, also those by this engine's calls.
  func takeNews() -> [ItemNews]

  /// Yields when `takeNews` may have something to tell, until the engine is dropped. For one listener.
  var news: AsyncStream<Void> { get }

  /// Whether the other process decides at each call who gets a secret, and asks a person; else, as by default, this one
  /// does.
  var decidesAccess: Bool { get }

  /// Has the other process ask its user for the keychain's passphrase, because of a path that is wanted, and returns when the
  /// keychain is open. By default no person is asked.
  ///
  /// - Throws: `locked` where the keychain is still locked; `unreachable`.
  func askToUnlock(for path: String) throws(StoreError)

  /// Returns when no batch is under way that the other process makes for one that may have ended since. By default there
  /// are none.
  ///
  /// - Throws: `locked`, `unreachable` where that process is gone.
  func finishBatches() throws(StoreError)
}

extension RemoteKeychain {
  /// false.
  public var decidesAccess: Bool { false }

  /// Throws `locked`.
  public func askToUnlock(for path: String) throws(StoreError) { throw .locked }

  /// Does nothing.
  public func finishBatches() throws(StoreError) {}
}
