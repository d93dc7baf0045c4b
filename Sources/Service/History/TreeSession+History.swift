import KeychainSelection
package import Model
package import Store
import Tree
import Views

/// A version of what stands at a path, for people.
package struct VersionEntry: Sendable {
  package var number: UInt64
  package var replaced: Timestamp
  package var changes: VersionChanges
  /// Of the value, in bytes.
  package var size: Int

  fileprivate init(_ version: ItemVersion) {
    (number, replaced, changes) = (version.number, version.replaced, version.changes)
    size = version.item.size
  }

  fileprivate init(_ version: SettingVersion, _ codec: SettingCodec) {
    (number, replaced, changes) = (version.number, version.replaced, version.changes)
    size = (try? codec.content(of: version.value).count) ?? 0
  }
}

/// Settings and items that were removed, and of which a version is kept.
package struct RemovedEntries {
  fileprivate var settings: [(suite: ExactString, versions: [SettingVersion])] = []
  fileprivate var items: [TreePath] = []

  package var count: Int { settings.reduce(items.count) { $0 + $1.versions.count } }
  package var isEmpty: Bool { settings.isEmpty && items.isEmpty }
}

/// The earlier versions of what stands at a path.
extension TreeSession {
  /// The versions of an item or a key, the oldest first; empty: nothing is kept of it.
  ///
  /// - Throws: `Failure` for a path of another kind, and for a keychain that keeps no versions.
  package func versions(at path: TreePath) throws -> [VersionEntry] {
    if let (suite, key) = try key(at: path) {
      return try attempt(path) { () throws(StoreError) in try settings.versions(of: key, in: suite) }
        .map { VersionEntry($0, settings.codec) }
    }
    return try itemVersions(at: path).map { VersionEntry($0) }
  }

  private func itemVersions(at path: TreePath) throws -> [ItemVersion] {
    let identity = try identity(at: path)
    return try attempt(path) { () throws(StoreError) in try keychain().versions(of: identity) }
  }

  /// Every path below a folder of which something is kept; sorted.
  package func pathsWithHistory(below path: TreePath) throws -> [String] {
    switch path.components.first {
    case "defaults": return try keysWithHistory(below: path)
    case "keychain", "views": return try itemsWithHistory(below: path)
    case nil: return try keysWithHistory(below: path) + (keepsItems ? itemsWithHistory(below: path) : [])
    default: throw Failure(path.string, "there is nothing of this name")
    }
  }

  /// Whether the keychain keeps versions of its items.
  package var keepsItems: Bool { stores.keychain?.engine.history != nil }

  private func keysWithHistory(below path: TreePath) throws -> [String] {
    let keys = try settingVersions(below: path).flatMap { suite, versions in
      Set(versions.map(\.key)).map { Self.path(of: $0, in: suite) }
    }
    return keys.filter { path.isAbove($0) }.sorted()
  }

  private static func path(of key: ExactString, in suite: ExactString) -> String {
    "defaults/\(PathName(suite).string)/\(PathName(key).string)"
  }

  /// All that is kept of settings, by their suites; of a path below one suite, that of this suite alone.
  private func settingVersions(below path: TreePath) throws -> [(ExactString, [SettingVersion])] {
    let one = path.components.count > 1 ? try name(path, 1) : nil
    return try attempt(path) { () throws(StoreError) in
      guard let history = settings.engine.history else { return [] }
      var found: [(ExactString, [SettingVersion])] = []
      let suites = if let one { [one] } else { try history.suitesWithVersions() }
      for suite in suites {
        found.append((suite, try history.versions(of: suite)))
      }
      return found
    }
  }

  private func itemsWithHistory(below path: TreePath) throws -> [String] {
    let identities = try attempt(path) { () throws(StoreError) in try keychain().identitiesWithVersions() }
    // Of sealed documents, views have a path.
    let paths = identities.filter { !$0.isDocument || Views.name(of: $0) != nil }.map {
      $0.documentName?.string ?? FileTree.path(of: $0)
    }
    return paths.filter { path.isAbove($0) }.sorted()
  }

  /// Makes an item or a key what it was. `number`: which version; nil: the newest.
  ///
  /// - Returns: the version that was restored.
  /// - Throws: `Failure` where there is none, or a person refuses.
  @discardableResult
  package func restore(
    _ path: TreePath, _ number: UInt64?
  ) throws -> (version: VersionEntry, isChange: Bool) {
    guard Self.hasVersions(path) else { throw try ofFolder(path) }
    if let (suite, key) = try key(at: path) {
      return (try restore(key, of: suite, path, number), true)
    }
    let versions = try itemVersions(at: path)
    if number != nil || versions.isEmpty {
      return try bringBack(Self.version(number, of: versions, \.number, path), path)
    }
    if let whole = Self.whole(versions) { return try bringBack(whole, path) }
    // As an undo weakens no protection, some versions are what the item is.
    for version in versions.reversed() where try !isPresent(version, path) {
      let outcome = try bringBack(version, path)
      if outcome.isChange { return outcome }
    }
    throw Failure(
      path.string,
      "no earlier version differs from what it is, as an undo weakens no protection; nothing was changed",
      .notFound)
  }

  /// Whether the item is what a version of it would make of it, which is known without its secret: nothing but its protection or its name
  /// was changed when the version was replaced. No person is asked.
  private func isPresent(_ version: ItemVersion, _ path: TreePath) throws -> Bool {
    guard version.changes.isSubset(of: [.protection, .name]) else { return false }
    return try attempt(path) { () throws(StoreError) in
      guard let present = try keychain().item(with: version.item.identity),
        var restored = try? present.restoring(version.item)
      else { return false }
      (restored.created, restored.modified) = (present.created, present.modified)
      (restored.otpauth, restored.size) = (present.otpauth, present.size)
      return restored == present
    }
  }

  private func bringBack(
    _ version: ItemVersion, _ path: TreePath
  ) throws -> (version: VersionEntry, isChange: Bool) {
    let isChange = try attempt(path) { () throws(StoreError) in
      let keychain = try keychain()
      let permission = try keychain.permission(
        toRestore: version, path: path.string, by: caller)
      let permit = try permission.map { (permission) throws(StoreError) in try permission.fetch() }
      let before = try keychain.item(with: version.item.identity)
      return try keychain.restore(version, permit) != before
    }
    return (VersionEntry(version), isChange)
  }

  /// The item that was removed file by file, as by `rm -r`: as it was before its `otpauth`, which goes first. nil: it was not.
  private static func whole(_ versions: [ItemVersion]) -> ItemVersion? {
    guard let removed = versions.last, removed.changes.contains(.removal), removed.item.otpauth == nil,
      let before = versions.dropLast().last, before.changes == .otpauth, before.item.otpauth != nil,
      removed.replaced.seconds &- before.replaced.seconds <= removalSeconds
    else { return nil }
    return before
  }

  /// The files of an item that are removed within so many seconds are removed as one.
  private static let removalSeconds: Int64 = 10

  private func restore(
    _ key: ExactString, of suite: ExactString, _ path: TreePath, _ number: UInt64?
  ) throws -> VersionEntry {
    let versions = try attempt(path) { () throws(StoreError) in try settings.versions(of: key, in: suite) }
    if versions.isEmpty, settings.engine.origins != nil {
      throw Failure(
        path.string,
        "\(Self.nothingKept(number, hasOthers: false)); where a layer below has it, `keyhole reset \(path.string.quotedForShell)` shows that value",
        .notFound)
    }
    let version = try Self.version(number, of: versions, \.number, path)
    try attempt(path) { () throws(StoreError) in try settings.restore([version], in: suite) }
    return VersionEntry(version, settings.codec)
  }

  private static func version<Version>(
    _ number: UInt64?, of versions: [Version], _ numbers: KeyPath<Version, UInt64>, _ path: TreePath
  ) throws -> Version {
    let found = number.map { number in versions.first { $0[keyPath: numbers] == number } } ?? versions.last
    guard let found else {
      throw Failure(path.string, Self.nothingKept(number, hasOthers: !versions.isEmpty), .notFound)
    }
    return found
  }

  /// The error for a folder, which has no versions of its own.
  private func ofFolder(_ path: TreePath) throws -> Failure {
    let kept = try pathsWithHistory(below: path)
    if kept.isEmpty { try requireKnown(path) }
    let subject = path.components.isEmpty ? nil : path.string
    let reason = "versions are kept of keys and items, and this is a folder"
    guard let first = kept.first else { return Failure(subject, "\(reason); nothing is kept below it") }
    let history = "`keyhole history \(path.string.quotedForShell)` lists what is kept below it"
    return Failure(
      subject,
      "\(reason); \(history), and `keyhole undo \(first.quotedForShell)` brings "
        + (kept.count == 1 ? "that back" : "the first of it back"))
  }

  private static func nothingKept(_ number: UInt64?, hasOthers: Bool) -> String {
    guard let number, hasOthers else { return "no earlier version of it is kept" }
    return "there is no version \(number); `keyhole history` lists those that are kept"
  }

  /// Whether versions are kept of what a path names: it is that of a key, an item or a view, and no folder.
  package static func hasVersions(_ path: TreePath) -> Bool {
    path.isKey || path.isInItem || path.view != nil
  }

  /// All below a folder whose last change was a removal.
  package func removed(below path: TreePath) throws -> RemovedEntries {
    var removed = RemovedEntries()
    if path.components.isEmpty || path.components.first == "defaults" {
      for (suite, versions) in try settingVersions(below: path) {
        let last = Dictionary(versions.map { ($0.key, $0) }) { $1 }.values.filter { version in
          version.changes.contains(.removal) && path.isAbove(Self.path(of: version.key, in: suite))
        }
        guard !last.isEmpty else { continue }
        let present = try attempt(path) { () throws(StoreError) in
          try settings.existingSuite(suite)?.fetch()?.entries
        }
        let gone = last.filter { present?[$0.key] == nil }
        if !gone.isEmpty { removed.settings.append((suite, gone)) }
      }
    }
    guard path.components.first != "defaults", !path.components.isEmpty || keepsItems else { return removed }
    removed.items = try itemsWithHistory(below: path).map { TreePath($0) }.filter { kept in
      guard try versions(at: kept).last?.changes.contains(.removal) == true else { return false }
      return (try? existingNode(at: kept)) == nil
    }
    return removed
  }

  /// Brings them back: the settings of a suite in one change, as far as the engine takes so much. A key that was set meanwhile stays. `advance` is called after each with the number of those that are back.
  package func bringBack(_ removed: RemovedEntries, _ advance: (Int) -> Void) throws {
    var count = 0
    for (suite, versions) in removed.settings {
      let path = TreePath("defaults/" + PathName(suite).string)
      try attempt(path) { () throws(StoreError) in
        try settings.restore(versions, in: suite, onlyMissing: true)
      }
      count += versions.count
      advance(count)
    }
    for path in removed.items {
      try restore(path, nil)
      count += 1
      advance(count)
    }
  }

  /// Deletes the versions of an item or a key, or of all that is and was in a folder. - Returns: how many.
  @discardableResult package func purge(_ path: TreePath) throws -> Int {
    if path.components.first == "defaults", path.components.count > 1 {
      let suite = try name(path, 1)
      let key = path.components.count > 2 ? try name(path, 2) : nil
      return try attempt(path) { () throws(StoreError) in
        guard let history = settings.engine.history else { throw .noHistory }
        return try history.purge(suite, key)
      }
    }
    guard Self.hasVersions(path) else {
      let counts = try pathsWithHistory(below: path).map { try purge(TreePath($0)) }
      return counts.reduce(0, &+)
    }
    let identity = try identity(at: path)
    return try attempt(path) { () throws(StoreError) in try keychain().purgeVersions(of: identity) }
  }

  /// Deletes the versions of all items and keys. - Returns: how many.
  package func purgeAll() throws -> Int {
    var count = 0
    let suites = try attempt(TreePath("defaults")) { () throws(StoreError) in
      try settings.engine.history?.suitesWithVersions() ?? []
    }
    for suite in suites {
      let path = TreePath("defaults/" + PathName(suite).string)
      count += try attempt(path) { () throws(StoreError) in
        try settings.engine.history?.purge(suite, nil) ?? 0
      }
    }
    guard stores.keychain?.engine.history != nil else { return count }
    return try count
      + attempt(TreePath("keychain")) { () throws(StoreError) in try keychain().purgeAllVersions() }
  }

  var settings: SettingsStore { tree.settings }

  /// The keys that paths name, by their suites.
  func keysBySuite(_ paths: [String]) throws -> [ExactString: Set<ExactString>] {
    var keys: [ExactString: Set<ExactString>] = [:]
    for path in paths {
      guard let (suite, key) = try key(at: TreePath(path)) else { continue }
      keys[suite, default: []].insert(key)
    }
    return keys
  }

  /// Suite and key that a path names; nil: it is no path of a key.
  private func key(at path: TreePath) throws -> (ExactString, ExactString)? {
    guard path.components.first == "defaults", path.components.count == 3 else { return nil }
    return (try name(path, 1), try name(path, 2))
  }

  func name(_ path: TreePath, _ index: Int) throws -> ExactString {
    let name = try attempt(path) { () throws(StoreError) in
      try PathName(lookingUp: path.components[index].utf8)
    }
    guard let plain = name.plain else {
      throw Failure(path.string, "this name is shown cut; nothing can be found by it")
    }
    return plain
  }

  /// How much is kept of what is at a path; nil: nothing.
  func retention(of path: TreePath) -> HistoryRetention? {
    guard path.components.first != "defaults" else { return settings.engine.history?.retention }
    return stores.keychain?.presentRetention()
  }

  private func identity(at path: TreePath) throws -> ItemIdentity {
    if let view = path.view { return .document(view) }
    do throws(StoreError) {
      return try tree.identityOfItem(at: path.components)
    } catch {
      guard error == .notFound else { throw Failure(path.string, error) }
      throw Failure(path.string, "there is no such item, and no earlier version of one", .notFound)
    }
  }

  func keychain() throws(StoreError) -> KeychainStore {
    guard let keychain = stores.keychain else { throw .noHistory }
    return keychain
  }
}

extension TreePath {
  /// The name of the document of a view: `views/NAME`, also where the path is that of its template; nil: it leads elsewhere.
  package var view: ExactString? {
    guard components.count == 2, ["views", "templates"].contains(components[0]) else { return nil }
    return ExactString("views/" + components[1])
  }
}
