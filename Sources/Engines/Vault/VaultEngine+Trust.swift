public import Model
public import Store

extension VaultEngine {
  /// The vault as it is, beside what this device last saw of it.
  ///
  /// - Throws: `locked` for a vault that was never unlocked.
  public func comparison() throws(StoreError) -> VaultComparison {
    try vault.use { vault throws(StoreError) in try vault.opened().comparison() }
  }

  /// Takes the vault as it is now, after it was found older than its anchor or not to add up.
  ///
  /// Items that were deleted meanwhile are back, and missing ones stay missing: ask a person first, and show both
  /// states. Where the key slots are not those that were stored, only the one that opened the vault stays.
  ///
  /// - Returns: the states before.
  /// - Throws: `locked`; `unsupported` for a vault of Keyhole 0.1; `readOnly`, `noSpace`.
  @discardableResult
  public func acceptRollback() throws(StoreError) -> VaultComparison {
    try vault.use { vault throws(StoreError) in
      let comparison = try vault.opened().comparison()
      try vault.opened().accept()
      return comparison
    }
  }

  /// Removes the items of other devices only whose secrets are not in this vault, as a restored backup has them.
  ///
  /// - Returns: how many.
  /// - Throws: `locked`, `readOnly` for a vault that is distrusted, `noSpace`.
  @discardableResult
  public func removeItemsLeftOut() throws(StoreError) -> Int {
    try withSession { session throws(StoreError) in
      let items = try session.itemsLeftOut()
      if !items.isEmpty { try session.remove(items, forGood: true) }
      return items.count
    }
  }

  /// The trust by the manifest and this device's anchor, as of the last call that read the file.
  public var trust: KeychainTrust {
    vault.use { vault in vault.session?.trust ?? .trusted }
  }
}
