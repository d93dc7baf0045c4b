public import Model
public import Store

extension VaultEngine: ItemLookup {
  /// The vault itself, as long as not all items were read.
  public var lookup: (any ItemLookup)? {
    vault.use { vault in vault.session?.isUnread == true ? self : nil }
  }

  /// Opens the one row with the identity's tag, and proves it, or that there is none.
  ///
  /// Where that can't be proven, all items are read, so that `trust` says what is wrong.
  /// - Throws: `locked` for a vault that was never unlocked, `damaged`.
  public func item(with identity: ItemIdentity) throws(StoreError) -> Item? {
    try withSession { session throws(StoreError) in try session.item(with: identity) }.flatMap(shown)
  }

  /// Opens the one row. - Throws: as `item(with:)`.
  public func item(_ id: ItemID) throws(StoreError) -> Item? {
    try withSession { session throws(StoreError) in try session.item(id) }.flatMap(shown)
  }

  /// true: by its keys.
  public var authenticatesItems: Bool { true }

  /// Also where they may be missing: without a manifest it is not known.
  public var areRulesMissing: Bool { state.areRulesMissing }

  func shown(_ item: Item) -> Item? { isShown(item) ? item : nil }
}
