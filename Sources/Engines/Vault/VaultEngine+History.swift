public import Model
public import Store
import VaultRecords

extension VaultEngine: VersionedKeychain {
  /// The vault itself; nil of the part that has the keys of another keychain's items.
  public var history: (any VersionedKeychain)? { part == .items ? self : nil }

  /// How much this process keeps of what it changes and removes; nil: it adds no versions.
  public var retention: HistoryRetention? { historySettings.retention }

  /// Holds for the next change.
  public func keep(_ retention: HistoryRetention) { historySettings.retention = retention }

  /// Opens the metadata of the versions. - Throws: as the protocol.
  public func versions(of identity: ItemIdentity) throws(StoreError) -> [ItemVersion] {
    try withSession { session throws(StoreError) in try session.versions(of: identity) }
  }

  /// Opens the metadata of one version. - Throws: as the protocol.
  public func version(_ id: ItemID) throws(StoreError) -> ItemVersion {
    try withSession { session throws(StoreError) in try session.version(id) }
  }

  /// Opens the metadata of the newest version.
  public func lastVersion(ofRemoved item: ItemID) throws(StoreError) -> ItemVersion? {
    try withSession { session throws(StoreError) in try session.lastVersion(ofRemoved: item) }
  }

  /// Opens the metadata of the items that have versions.
  public func identitiesWithVersions() throws(StoreError) -> [ItemIdentity] {
    try withSession { session throws(StoreError) in try session.identitiesWithVersions() }
  }

  /// Restores in one transaction. Secrets are opened only where they have to be sealed otherwise. - Throws: as the protocol.
  public func restore(_ version: ItemID) throws(StoreError) -> Item {
    try withSession { session throws(StoreError) in try session.restore(version, nil) }
  }

  /// Deletes the rows in one transaction and overwrites them (`secure_delete`), writes the database again without unused
  /// pages, and empties its log.
  @discardableResult public func purge(_ identity: ItemIdentity) throws(StoreError) -> Int {
    try withSession { session throws(StoreError) in try session.purge(identity) }
  }

  /// As `purge`, of all items.
  @discardableResult public func purgeAll() throws(StoreError) -> Int {
    try withSession { session throws(StoreError) in try session.purgeAll() }
  }

  /// Deletes outdated versions, some hundred items in a transaction.
  @discardableResult public func prune() throws(StoreError) -> Int {
    try withSession { session throws(StoreError) in try session.prune() }
  }
}
