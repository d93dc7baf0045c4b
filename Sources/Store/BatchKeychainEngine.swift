public import Model
public import SecretMemory

/// One change among those that happen together.
public enum ItemChange {
  /// A new item; its `id` and `size` are the engine's to give.
  case add(Item)
  /// A present item gets another secret, and what the closure changes of it.
  case rewrite(ItemID, (inout Item) throws(StoreError) -> Void)
  /// The item of this identity, which may be one that was added before, gets an `otpauth:` URI, or another one.
  case setOtpauth(ItemIdentity, modified: Timestamp)
}

/// A keychain that can make many changes in one transaction.
public protocol BatchKeychainEngine: KeychainEngine {
  /// Makes all changes or none, in their order. `secret` gives the secret of each by its index, one at a time, and may
  /// be slow: other callers wait meanwhile.
  ///
  /// - Throws: what `secret` throws; `exists`, `notFound`, `accessDenied` for an item with a password of its own,
  ///   `readOnly`, `noSpace`, `tooLarge`.
  func apply(
    _ changes: [ItemChange], secret: (Int) throws(StoreError) -> SecretBytes
  ) throws(StoreError) -> [Item]
}
