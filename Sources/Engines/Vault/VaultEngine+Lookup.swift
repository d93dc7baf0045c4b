public import Model
public import Store

extension VaultEngine: LookupKeychain {
  /// The vault itself.
  public var lookup: (any LookupKeychain)? { self }

  /// At most one: it is found by the keyed digest of its identity, and only its metadata are opened.
  public func items(with identity: ItemIdentity) throws(StoreError) -> [Item] {
    guard identity.isSeal == (part == .seals) else { return [] }
    let item = try current { session throws(StoreError) in try session.item(with: identity) }
    return item.map { [$0] } ?? []
  }

  /// Opens the metadata of this item only.
  public func item(_ id: ItemID) throws(StoreError) -> Item? {
    try current { session throws(StoreError) in try session.item(id) }.flatMap { isShown($0) ? $0 : nil }
  }

  /// Also opens another vault that has taken this one's path meanwhile.
  private func current<Result>(
    _ body: (Session) throws(StoreError) -> Result
  ) throws(StoreError) -> Result {
    try vault.use { vault throws(StoreError) in
      follow(vault)
      return try vault.withSession(body)
    }
  }
}
