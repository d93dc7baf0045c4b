public import Model
public import SecretMemory

// Secrets, given only under the conditions that their items state.
extension KeychainStore {
  /// An item's secret, given only under the conditions that the item states.
  ///
  /// - Throws: `notFound`, `accessDenied` without the permit that it takes, `locked`, `damaged`, `unreachable`,
  ///   `outOfMemory`.
  public nonisolated func secret(of item: ItemID, _ permit: Permit? = nil) throws(StoreError) -> SecretBytes {
    try secret(of: found(item), permit)
  }

  /// The secret of an item as `read` gave it just now.
  public nonisolated func secret(of item: Item, _ permit: Permit? = nil) throws(StoreError) -> SecretBytes {
    try checkAccess(to: item, permit)
    noteUse()
    // Other processes' libraries, and the key of an item's password, take more of the stack.
    defer { if permit?.password == nil, !mayBlock { wipeStackOfOpening() } else { wipeStack() } }
    return try engine(for: permit).secret(of: item.id)
  }

  /// Whether the item's secret would be given now, without giving it.
  ///
  /// - Throws: `notFound`, `accessDenied`, `locked`.
  public nonisolated func checkAccess(to item: ItemID, _ permit: Permit? = nil) throws(StoreError) {
    try checkAccess(to: found(item), permit)
  }

  /// Whether the secret of an item as `read` gave it just now would be given.
  public nonisolated func checkAccess(
    to item: Item, _ permit: Permit? = nil, _ secrets: ItemSecrets = .value
  ) throws(StoreError) {
    guard try isAccessible(item) else { throw .locked }
    guard try isGuarded(item) else { return }
    guard let permit, permit.item == item.id, permit.secrets.covers(secrets) else {
      throw .accessDenied(reason: "a person or a rule has to permit it first")
    }
    try permit.requireUnchangedCaller()
  }

  nonisolated func engine(for permit: Permit?) throws(StoreError) -> any KeychainEngine {
    guard let password = permit?.password else { return engine }
    if let engine = password.engine { return engine }
    return try engine.requirePasswords().using(password)
  }
}
