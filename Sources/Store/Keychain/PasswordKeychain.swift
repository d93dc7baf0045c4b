public import Model

/// A keychain that seals items with passwords of their own besides (`applicationPassword`).
public protocol PasswordKeychain: Sendable {
  /// The same keychain, for an item that is sealed with a password, or is to be.
  ///
  /// Its calls throw `rejected` where that is not the item's password.
  func using(_ password: ItemPassword) throws(StoreError) -> any KeychainEngine

  /// Whether a password is the item's. It reads no more than that takes.
  ///
  /// - Throws: `rejected` where it is not; `notFound`, `locked`, `damaged`.
  func check(_ password: ItemPassword, of item: ItemID) throws(StoreError)

  /// Seals an item with another password, in one step: whenever it is interrupted, one of the two opens the item.
  ///
  /// - Throws: `rejected` where `present` is not the item's password, `invalidValue` for an item that has none,
  ///   `accessDenied` where another process has to ask for both, `notFound`, `locked`, `damaged`, `readOnly`, `noSpace`.
  func changePassword(
    of item: ItemID, from present: ItemPassword, to new: ItemPassword
  ) throws(StoreError)

  /// Makes a password ready to seal an item with, which may take long, and no other call waits for it. By default it does
  /// nothing.
  func prepare(_ password: ItemPassword) throws(StoreError)
}

extension PasswordKeychain {
  /// Reads the item's secret.
  public func check(_ password: ItemPassword, of item: ItemID) throws(StoreError) {
    _ = try using(password).secret(of: item)
  }

  /// Does nothing.
  public func prepare(_ password: ItemPassword) throws(StoreError) {}
}
