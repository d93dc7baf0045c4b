import ClusterRecords
import EtcdClient
package import Model
import Platform
import Store
import Synchronization
import VaultRecords

/// Suites in a cluster, read from a copy that follows the cluster, and changed one transaction at a time.
///
/// Names and values are sealed before they leave: `Documentation/CLUSTER-FORMAT.md`. Without the cluster, what was read
/// before can be read on, and nothing be changed.
package final class ClusterSuites: SuiteEngine {
  package let propertyLists: any PropertyListCoding
  let session: ClusterSession
  let names: ClusterCollection<SuiteName>
  let state = Locked(State())
  let keeping = Locked(VersionKeeping())
  let follower: ClusterFollower
  private let news: SuiteNews

  struct State {
    /// The heads of all suites as they are stored; nil: nothing was read yet.
    var heads: [ItemKey: KeyValue]?
    /// The suites of which the settings were read.
    var loaded: [ItemKey: ClusterCollection<SuiteEntry>] = [:]
  }

  /// `changed` is called with the names of suites that others have changed, on a thread of its own. It may use the engine.
  package init(
    _ session: ClusterSession, propertyLists: any PropertyListCoding,
    changed: @escaping @Sendable (ExactString) -> Void = { _ in }
  ) {
    (self.session, self.propertyLists) = (session, propertyLists)
    let news = SuiteNews(changed)
    self.news = news
    names = ClusterCollection(session.paths.names, session)
    follower = ClusterFollower(session, KeyRange(prefix: session.paths.settings))
  }

  /// Ends what follows the cluster. No call may follow.
  package func close() { follower.stop() }

  /// Since when the cluster was not heard; nil: it is.
  package var silence: Timestamp? { follower.silence }

  /// Whether the cluster was not heard since.
  package var isStale: Bool? { follower.silence != nil }

  package var largestValue: Int? { ClusterFormat.largestValue }

  /// Begins to follow the cluster, once. - Throws: `locked` before the first unlock, without asking the cluster; `unreachable`, `damaged`.
  func start() throws(StoreError) {
    guard session.keys.isReadable else { throw .locked }
    guard !follower.hasStarted else { return }
    let isAway = session.offline?.isServing == true
    let patience = isAway ? ClusterSession.shortPatience : session.cluster.deadline
    try session.limited(to: patience) { () throws(StoreError) in try follow() }
  }

  private func follow() throws(StoreError) {
    try follower.start { () throws(StoreError) in
      try readNames()
    } take: { [weak self] changes, revision in
      self?.take(changes, revision)
    } reread: { [weak self] () throws(StoreError) in
      try self?.reread() ?? 0
    }
  }

  /// The list of suites, and all heads. Returns the revision from which on the watch has to tell.
  private func readNames() throws(StoreError) -> Int64 {
    let values: [[KeyValue]]
    let revision: Int64
    do throws(ClusterError) {
      (values, revision) = try session.read([KeyRange(prefix: session.paths.suiteHeads)])
    } catch { throw StoreError(error) }
    let prefix = session.paths.suiteHeads.count
    let heads = values[0].compactMap { value in ClusterPaths.id(value.key[prefix...]).map { ($0, value) } }
    state.use { $0.heads = Dictionary(heads) { $1 } }
    try names.load()
    return revision
  }

  private func reread() throws(StoreError) -> Int64 {
    let (before, heads) = (presentNames, state.use { $0.heads ?? [:] })
    let revision = try readNames()
    // Suites that are not in the list any more are gone.
    for id in state.use({ Array($0.loaded.keys) }) where names.distrust == nil && name(of: id) == nil {
      state.use { $0.loaded[id] = nil }
      session.forget(session.paths.suite(id).head)
    }
    let (loaded, present) = state.use { ($0.loaded, $0.heads ?? [:]) }
    for (_, collection) in loaded {
      // The watch goes on behind what it misses: it is read with the next call.
      do throws(StoreError) { try collection.load() } catch { collection.setBehind(at: revision) }
    }
    var affected = before.symmetricDifference(presentNames)
    for (id, head) in present where heads[id]?.modified != head.modified {
      if let name = name(of: id) { affected.insert(name) }
    }
    // A suite without a head can't be read.
    for id in heads.keys where present[id] == nil {
      if let name = name(of: id) { affected.insert(name) }
    }
    for name in affected { news.tell(name) }
    return revision
  }
}

extension ClusterSuites {
  /// Takes over the changes of one revision.
  private func take(_ changes: [KeyChange], _ revision: Int64) {
    var (ofNames, ofSuites): ([KeyChange], [ItemKey: [KeyChange]]) = ([], [:])
    for change in changes {
      if let id = suite(of: change.key) {
        ofSuites[id, default: []].append(change)
      } else {
        ofNames.append(change)
      }
    }
    var affected: Set<ExactString> = []
    if !ofNames.isEmpty {
      let ids = Set(ofNames.compactMap { session.paths.names.id($0.key) })
      let before = entries(ids)
      names.take(ofNames, revision: revision)
      let after = entries(ids)
      for id in ids where before[id] != after[id] {
        for entry in [before[id], after[id]] { if let entry { affected.insert(entry.name) } }
      }
    }
    for (id, changes) in ofSuites {
      guard take(changes, of: id, revision) else { continue }
      if let name = name(of: id) { affected.insert(name) }
    }
    for name in affected { news.tell(name) }
  }

  /// Returns whether others may have made the changes.
  private func take(_ changes: [KeyChange], of id: ItemKey, _ revision: Int64) -> Bool {
    let head = session.paths.suite(id).head
    let collection = state.use { state in
      for change in changes where change.key == head {
        switch change {
        case .put(let value): state.heads?[id] = value
        case .delete: state.heads?[id] = nil
        }
      }
      // The suite is gone, as the list of suites says.
      if state.heads?[id] == nil, name(of: id) == nil {
        state.loaded[id] = nil
        session.forget(head)
      }
      return state.loaded[id]
    }
    return collection?.take(changes, revision: revision) ?? true
  }

  /// The entries of the list of suites, as far as they are there.
  private func entries(_ ids: Set<ItemKey>) -> [ItemKey: SuiteName] {
    let found = try? names.lookAtCopy { copy in
      Dictionary(uniqueKeysWithValues: ids.compactMap { id in copy.entries[id].map { (id, $0.kept) } })
    }
    return (found ?? nil) ?? [:]
  }

  private var presentNames: Set<ExactString> {
    let ids = (try? names.lookAtCopy { $0.view.ids }) ?? nil
    return Set((ids ?? [:]).keys)
  }

  private func suite(of key: [UInt8]) -> ItemKey? {
    let (heads, settings) = (session.paths.suiteHeads, session.paths.allSettings)
    if key.starts(with: heads) { return ClusterPaths.id(key[heads.count...]) }
    guard key.starts(with: settings), key.count >= settings.count + 32 else { return nil }
    return ClusterPaths.id(key.dropFirst(settings.count).prefix(32))
  }

  func name(of id: ItemKey) -> ExactString? {
    (try? names.lookAtCopy { $0.entries[id]?.kept.name }) ?? nil
  }

  /// The id of the suite of a name; nil: there is none. - Throws: as `start`.
  func id(of name: ExactString) throws(StoreError) -> ItemKey? {
    try start()
    return try withNames { $0[name] }
  }

  /// The id of the suite of a name, or of one that was removed and of which values are kept; nil: there is neither.
  func idWithVersions(of name: ExactString) throws(StoreError) -> ItemKey? {
    if let id = try id(of: name) { return id }
    return try removedNames()[name]
  }

  /// The removed suites of which values are kept.
  func removedNames() throws(StoreError) -> [ExactString: ItemKey] {
    try start()
    return try names.lookAtCopy { $0.view.removed } ?? [:]
  }

  /// The ids of the suites by their names. Where the list does not fit together, as it was last.
  func withNames<Result>(
    _ body: ([ExactString: ItemKey]) throws(StoreError) -> Result
  ) throws(StoreError) -> Result {
    if names.distrust != nil, let known = try names.lookAtCopy({ $0.view.ids }) { return try body(known) }
    return try names.withCopy { copy throws(StoreError) in try body(copy.view.ids) }
  }

  /// The settings of a suite, for which nothing may have been read yet.
  func settings(of id: ItemKey) -> ClusterCollection<SuiteEntry> {
    state.use { state in
      if let known = state.loaded[id] { return known }
      let new = ClusterCollection<SuiteEntry>(session.paths.suite(id), session)
      state.loaded[id] = new
      return new
    }
  }
}
