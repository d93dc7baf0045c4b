public import Model
public import SecretMemory
public import Store

extension VaultEngine: BatchKeychainEngine {
  public func apply(
    _ changes: [ItemChange], secret: (Int) throws(StoreError) -> SecretBytes
  ) throws(StoreError) -> [Item] {
    try withSession { session throws(StoreError) in try session.apply(changes, secret: secret) }
  }
}
