public import Model
public import SecretMemory

/// One change among those that happen together.
public enum ItemChange {
  /// A new item; its `id` and `size` are the engine's to give.
  case add(Item)
  /// A present item gets another secret, and what the closure changes of it.
  case rewrite(ItemID, (inout Item) throws(StoreError) -> Void)
  /// A present item gets what the closure changes of it, and keeps its secrets. No secret is asked for.
  case update(ItemID, (inout Item) throws(StoreError) -> Void)
  /// A present item goes. No secret is asked for.
  case remove(ItemID)
  /// The item of this identity, which may be one that was added before, gets an `otpauth:` URI, or another one.
  case setOtpauth(ItemIdentity, modified: Timestamp)
}

/// A keychain that can make many changes in one transaction.
public protocol BatchKeychain: Sendable {
  /// Makes all changes or none, in their order. `secret` gives the secret of each by its index, one at a time, and may
  /// be slow: other callers wait meanwhile.
  ///
  /// - Returns: the items that were added or changed, in the order of the changes.
  /// - Throws: `unsupported` for an `update` or a `remove` where another process makes the changes; what `secret` throws; `exists`, `notFound`, `accessDenied` for an item with a password of its own,
  ///   `readOnly`, `noSpace`, `tooLarge`; `unreachable` where another process makes the changes and does not answer: then
  ///   they may have been made.
  func apply(
    _ changes: [ItemChange], secret: (Int) throws(StoreError) -> SecretBytes
  ) throws(StoreError) -> [Item]
}

/// Keeps the secrets of a batch, in their order, until all have come. Used by one thread at a time.
public protocol SecretSpool: AnyObject {
  /// - Throws: `noSpace`, `quotaExceeded`, `outOfMemory`, `tooLarge`.
  func append(_ secret: borrowing SecretBytes) throws(StoreError)

  /// The secret that was the `index`-th to be appended.
  func secret(at index: Int) throws(StoreError) -> SecretBytes
}

/// A keychain that makes a batch of changes without other callers waiting for it.
public protocol SpoolingKeychain: Sendable {
  /// An empty spool for one batch. - Throws: `noSpace`, `readOnly`, `outOfMemory`.
  func makeSpool() throws(StoreError) -> any SecretSpool

  /// As `apply`, with the secrets of a spool; `progress` is called before each.
  ///
  /// Other calls go on meanwhile, and find the items as they were before. A `lock` ends it with `locked`.
  func apply(
    _ changes: [ItemChange], from spool: any SecretSpool, progress: () throws(StoreError) -> Void
  ) throws(StoreError) -> [Item]
}
