import Control
import KeychainSelection
import Model
import Store
import Tree
import Views

/// The notice about removed items and keys, for people.
package final class RemovalNotice {
  /// After so long the history of settings is switched off again.
  private static let renewal = Duration.seconds(3)

  private let session: TreeSession
  private let path: TreePath
  /// The items that are about to be removed.
  private let items: [String]
  private var switchedOff = ContinuousClock.now
  /// The values that the keys had when the removal began.
  private var values: Set<SettingValue> = []

  /// Before a removal. It reads names only.
  package init(_ session: TreeSession, _ path: TreePath) {
    (self.session, self.path) = (session, path)
    items = session.retention(of: path)?.keepsAny == true ? session.items(at: path) : []
  }

  /// After the removal; nil: nothing was to be kept. Looks at what is kept: of a large value, or with an item's own
  /// `user.keyhole.history`, it may be nothing.
  package var line: String? {
    guard let days = session.retention(of: path)?.days, !items.isEmpty else { return nil }
    let duration = days == 1 ? "1 day" : "\(days) days"
    if items.count == 1 {
      let kept = (try? session.versions(at: TreePath(items[0]))) ?? []
      let path = items[0].quotedForShell
      if kept.last?.changes.contains(.removal) == true {
        return "kept for \(duration): `keyhole undo \(path)` brings it back"
      }
      return kept.isEmpty
        ? "it is gone for good; nothing of it is kept"
        : "its last value is gone for good, and earlier ones are kept: `keyhole history --purge \(path)` deletes them"
    }
    let kept = Set((try? session.pathsWithHistory(below: path)) ?? [])
    let count = items.count { kept.contains($0) }
    let things = path.components.first == "defaults" ? "keys" : "items"
    guard count > 0 else { return "these \(things) are gone for good; nothing of them is kept" }
    let all = count == items.count ? "\(count)" : "\(count) of \(items.count)"
    return
      "\(all) \(things) are kept for \(duration): `keyhole history \(path.string)` lists them, "
      + "`keyhole undo PATH` brings one back"
  }

  /// Before a removal of which nothing is to be kept: deletes the earlier versions, and switches the history of the items off, many in
  /// one transaction, that of the keys for some seconds. So an interruption leaves an item or key as it is, without versions, or
  /// nothing of it.
  ///
  /// - Throws: `Failure`.
  package func switchOff() throws {
    guard !items.isEmpty else { return }
    if path.view != nil, let views = session.tree.views {
      return try session.attempt(path) { () throws(StoreError) in
        if let view = try views.view(ExactString(path.name)) { try views.switchOffHistory(of: view) }
      }
    }
    // On a full disk nothing can be written, and what is kept is deleted afterwards.
    guard path.components.first == "keychain" else {
      values = (try? session.settingValues(at: path)) ?? []
      return _ = try? switchOffSettings()
    }
    let paths = Set(items)
    let (keychain, ids) = try session.attempt(path) { () throws(StoreError) in
      let keychain = try session.keychain()
      let ids = try keychain.read { index in
        index.all.filter { paths.contains(FileTree.path(of: $0.identity)) }.map(\.id)
      }
      return (keychain, ids)
    }
    var pace = RemovalPace()
    try pace.run(ids) { part in
      try session.attempt(path) { () throws(StoreError) in
        try keychain.update(Array(part)) { $0.attributes[Item.historyAttribute] = Array("0".utf8) }
      }
      return true
    }
  }

  /// While many are removed: keeps the history of settings off.
  package func renew() {
    guard path.components.first == "defaults", ContinuousClock.now - switchedOff > Self.renewal else {
      return
    }
    _ = try? switchOffSettings()
  }

  private func switchOffSettings() throws {
    switchedOff = .now
    guard let history = session.settings.engine.history else { return }
    for (suite, keys) in try session.keysBySuite(items) {
      _ = try session.attempt(path) { () throws(StoreError) in
        try history.purge(keys, beforeRemovalFrom: suite)
      }
    }
  }

  /// Deletes what is kept of the items, and of all that was removed there before.
  ///
  /// - Returns: a note for a person where their values are kept elsewhere.
  /// - Throws: `Failure`.
  package func purge() throws -> String? {
    for kept in try pathsToPurge() { try session.purge(kept) }
    let mounts = (try? StoragePaths.ofMount()).map { MountRegistration.all(in: $0.runtime) } ?? []
    for suite in try session.keysBySuite(items).keys {
      session.settings.engine.history?.endPurge(of: suite, isFollowed: mounts.contains(where: \.isAlive))
    }
    return session.noteOnFormerNames(having: values)
  }

  /// The paths of which something may still be kept: one item itself, and what was removed from a folder before.
  private func pathsToPurge() throws -> [TreePath] {
    switch path.components.first {
    case "defaults":
      let keys = (try? switchOffSettings()) == nil ? items.map { TreePath($0) } : []
      // To a folder belong all keys of its suites, which are deleted together.
      let suites = Set(try session.pathsWithHistory(below: path).map { TreePath($0).parent })
      return keys + suites.sorted { $0.string < $1.string }
    case "keychain" where session.keepsItems, "views" where session.keepsItems:
      // Of many, none has a version any more since they were switched off.
      let below = try session.pathsWithHistory(below: path)
      return ((path.isInItem || path.view != nil ? items : []) + below).map { TreePath($0) }
    default: return items.map { TreePath($0) }
    }
  }
}

extension TreeSession {
  /// The paths of the items at or below a path, in no order; empty where it leads elsewhere.
  func items(at path: TreePath) -> [String] {
    if path.components.first == "defaults" { return keys(at: path) }
    if let view = path.view { return [view.string] }
    guard path.components.first == "keychain" else { return [] }
    if let identity = try? tree.identityOfItem(at: path.components) {
      return path.isOtpauth ? [] : [FileTree.path(of: identity)]
    }
    let all = (try? stores.keychain?.read { index in index.all.map { FileTree.path(of: $0.identity) } }) ?? []
    return all.filter { path.isAbove($0) }
  }

  private func keys(at path: TreePath) -> [String] {
    switch path.components.count {
    case 1: names(in: path).flatMap { names(in: $0).map(\.string) }
    case 2: names(in: path).map(\.string)
    case 3: [path.string]
    default: []
    }
  }

  private func names(in folder: TreePath) -> [TreePath] {
    ((try? tree.list(node(at: folder))) ?? []).map { folder.appending($0.name) }
  }
}
