import Model
package import Store
import Tree

/// The earlier versions of what stands at a path.
extension TreeSession {
  /// The versions of an item, the oldest first; empty: nothing is kept of it.
  ///
  /// - Throws: `Failure` for a path that is no item's, and for a keychain that keeps no versions.
  package func versions(at path: TreePath) throws -> [ItemVersion] {
    let identity = try identity(at: path)
    return try attempt(path) { () throws(StoreError) in try keychain().versions(of: identity) }
  }

  /// Every path below a folder, or the folder itself, of which something is kept; sorted.
  package func pathsWithHistory(below path: TreePath) throws -> [String] {
    let identities = try attempt(path) { () throws(StoreError) in try keychain().identitiesWithVersions() }
    let prefix = path.components.isEmpty ? "" : path.string + "/"
    return identities.map { FileTree.path(of: $0) }.filter { $0.hasPrefix(prefix) }.sorted()
  }

  /// Makes an item what it was. `number`: which version; nil: the newest.
  ///
  /// - Returns: the version that was restored.
  /// - Throws: `Failure` where there is none, or a person refuses.
  package func restore(_ path: TreePath, _ number: UInt64?) throws -> ItemVersion {
    let versions = try versions(at: path)
    guard let version = number.map({ number in versions.first { $0.number == number } }) ?? versions.last else {
      throw Failure(path.string, Self.nothingKept(number, hasOthers: !versions.isEmpty))
    }
    try attempt(path) { () throws(StoreError) in
      let keychain = try keychain()
      let permission = try keychain.permission(
        toRestore: version, path: FileTree.path(of: version.item.identity), by: caller)
      let permit = try permission.map { (permission) throws(StoreError) in try permission.fetch() }
      try keychain.restore(version, permit)
    }
    return version
  }

  private static func nothingKept(_ number: UInt64?, hasOthers: Bool) -> String {
    guard let number, hasOthers else { return "no earlier version of it is kept" }
    return "there is no version \(number); `keyhole history` lists those that are kept"
  }

  /// Deletes the versions of an item. - Returns: how many.
  @discardableResult package func purge(_ path: TreePath) throws -> Int {
    let identity = try identity(at: path)
    return try attempt(path) { () throws(StoreError) in try keychain().purgeVersions(of: identity) }
  }

  /// Deletes the versions of all items. - Returns: how many.
  package func purgeAll() throws -> Int {
    try attempt(TreePath("keychain")) { () throws(StoreError) in try keychain().purgeAllVersions() }
  }

  /// How much is kept; nil: the keychain keeps no versions.
  package var retention: HistoryRetention? { stores.keychain?.engine.history?.retention }

  private func identity(at path: TreePath) throws -> ItemIdentity {
    do throws(StoreError) {
      return try tree.identityOfItem(at: path.components)
    } catch {
      guard error == .notFound else { throw Failure(path.string, error) }
      throw Failure(path.string, "there is no such item, and no earlier version of one")
    }
  }

  private func keychain() throws(StoreError) -> KeychainStore {
    guard let keychain = stores.keychain else { throw .noHistory }
    return keychain
  }
}

/// What happens to removed items, for people.
package struct RemovalNotice {
  private let session: TreeSession
  private let path: TreePath
  /// The items that are about to be removed.
  private let items: [String]

  /// Before a removal. It reads names only.
  package init(_ session: TreeSession, _ path: TreePath) {
    (self.session, self.path) = (session, path)
    items = session.retention?.keepsAny == true ? session.items(at: path) : []
  }

  /// After the removal; nil: nothing of it is kept. Looks at what is kept: a full disk, or an item's own
  /// `user.keyhole.history`, keeps less.
  package var line: String? {
    guard let days = session.retention?.days, !items.isEmpty else { return nil }
    let duration = days == 1 ? "1 day" : "\(days) days"
    if items.count == 1 {
      let isKept = (try? session.versions(at: TreePath(items[0])))?.last?.changes.contains(.removal) ?? false
      return isKept ? "kept for \(duration): `keyhole undo \(items[0])` brings it back" : nil
    }
    let kept = Set((try? session.pathsWithHistory(below: path)) ?? [])
    let count = items.count { kept.contains($0) }
    guard count > 0 else { return nil }
    let all = count == items.count ? "\(count)" : "\(count) of \(items.count)"
    return "\(all) items are kept for \(duration): `keyhole history \(path.string)` lists them, "
      + "`keyhole undo PATH` brings one back"
  }

  /// Deletes what is kept of the items. - Throws: `Failure`.
  package func purge() throws {
    for item in items { try session.purge(TreePath(item)) }
  }
}

extension TreeSession {
  /// The paths of the items at or below a path, in no order; empty where it leads elsewhere.
  fileprivate func items(at path: TreePath) -> [String] {
    guard path.components.first == "keychain" else { return [] }
    if let identity = try? tree.identityOfItem(at: path.components) {
      return path.isOtpauth ? [] : [FileTree.path(of: identity)]
    }
    let prefix = path.string + "/"
    let all = (try? stores.keychain?.read { index in index.all.map { FileTree.path(of: $0.identity) } }) ?? []
    return all.filter { $0.hasPrefix(prefix) }
  }
}
