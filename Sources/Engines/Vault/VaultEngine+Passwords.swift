public import Model
import SecretMemory
public import Store
import VaultDatabase
import VaultRecords

extension VaultEngine: PasswordKeychain {
  /// The vault itself: scrypt derives a key from the password, which seals the secret's key.
  public var passwords: (any PasswordKeychain)? { self }

  /// The vault for items of this password. The key is derived with the first call that needs it.
  public func using(_ password: ItemPassword) throws(StoreError) -> any KeychainEngine {
    VaultWithPassword(vault: self, seal: PasswordSeal(password: password, cost: passwordCost))
  }

  /// Seals the item's secrets with the new password in one transaction. - Throws: as the protocol.
  public func changePassword(
    of item: ItemID, from present: ItemPassword, to new: ItemPassword
  ) throws(StoreError) {
    let present = PasswordSeal(password: present, cost: passwordCost)
    try VaultWithPassword(vault: self, seal: present).changePassword(of: item, to: new)
  }

  /// Derives the key with scrypt at the cost for new passwords.
  public func prepare(_ password: ItemPassword) throws(StoreError) {
    let seal = PasswordSeal(password: password, cost: passwordCost)
    defer { wipeStack() }
    do { try seal.derive(seal.parameters) } catch { throw StoreError(vault: error, errno: 0) }
  }
}
