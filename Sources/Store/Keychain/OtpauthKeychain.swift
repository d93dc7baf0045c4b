public import Model
public import SecretMemory

/// A keychain that holds an `otpauth:` URI beside an item's secret.
public protocol OtpauthKeychain: Sendable {
  /// An item's `otpauth:` URI. - Throws: `notFound`, also for an item that has none; as `KeychainEngine.secret`.
  func otpauth(of item: ItemID) throws(StoreError) -> SecretBytes

  /// Adds an item, with its URI if `item.otpauth` says that it has one. - Throws: as `KeychainEngine.add`.
  func add(
    _ item: Item, secret: borrowing SecretBytes, otpauth: borrowing SecretBytes
  ) throws(StoreError) -> Item

  /// Gives an item another `otpauth:` URI, or its first, or takes it away: `body` gets what is known of the present one,
  /// nil where there is none, and its bytes (empty unless `readingSecret`), and leaves nil where there is to be none.
  ///
  /// Nothing else of the item changes; its size is the engine's to give. Nothing is stored where it was read and all is
  /// left equal. - Throws: what `body` throws; as `KeychainEngine.rewrite`.
  func rewriteOtpauth(
    of item: ItemID, readingSecret: Bool,
    _ body: (inout FurtherSecret?, inout SecretBytes) throws(StoreError) -> Void
  ) throws(StoreError) -> Item
}
