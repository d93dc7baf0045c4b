public import Model
public import Store

extension MountedKeychain: VersionedKeychain {
  /// nil: the mount's keychain keeps no versions, as last reported.
  public var history: (any VersionedKeychain)? { memory.state.retention == nil ? nil : self }

  /// As the mount last reported it.
  public var retention: HistoryRetention? { memory.state.retention }

  /// Fetches the versions from the mount. - Throws: as the protocol; `unreachable`.
  public func versions(of identity: ItemIdentity) throws(StoreError) -> [ItemVersion] {
    guard case .versions(let versions) = try request(.fetchVersions(identity)).channel.reply().content else {
      throw WireReader.unreadable
    }
    return versions
  }

  /// Throws `unsupported`: versions are looked at by the item's name.
  public func version(_ id: ItemID) throws(StoreError) -> ItemVersion {
    guard let owner = id.version?.item, let identity = known(owner)?.identity else { throw .notFound }
    guard let version = try versions(of: identity).first(where: { $0.item.id == id }) else { throw .notFound }
    return version
  }

  /// nil: the mount's process decides by what protects an item.
  public func lastVersion(ofRemoved item: ItemID) throws(StoreError) -> ItemVersion? { nil }

  /// Fetches the identities from the mount. - Throws: as the protocol; `unreachable`.
  public func identitiesWithVersions() throws(StoreError) -> [ItemIdentity] {
    guard case .identities(let identities) = try request(.fetchVersions(nil)).channel.reply().content else {
      throw WireReader.unreadable
    }
    return identities
  }

  /// Has the mount restore, which may ask the user. - Throws: as the protocol; `unreachable`.
  public func restore(_ version: ItemID) throws(StoreError) -> Item {
    let call = try request(.restore(version))
    guard let item = try finish(call, call.channel.reply().content).first else { throw WireReader.unreadable }
    return item
  }

  /// Has the mount delete versions. - Throws: as the protocol; `unreachable`.
  @discardableResult public func purge(_ identity: ItemIdentity) throws(StoreError) -> Int {
    try count(of: .purge(identity))
  }

  /// Has the mount delete all versions. - Throws: as the protocol; `unreachable`.
  @discardableResult public func purgeAll() throws(StoreError) -> Int { try count(of: .purge(nil)) }

  /// Does nothing: the mount's process does.
  @discardableResult public func prune() throws(StoreError) -> Int { 0 }

  private func count(of message: ControlMessage) throws(StoreError) -> Int {
    guard case .count(let count) = try request(message).channel.reply().content else {
      throw WireReader.unreadable
    }
    return Int(clamping: count)
  }
}
