import ClusterRecords
import EtcdClient
package import Model
import Platform
package import SecretMemory
package import Store
import Synchronization
import VaultRecords

/// A keychain in a cluster: items in a copy that follows it, secrets read from it one by one.
///
/// Everything is sealed before it leaves: `Documentation/CLUSTER-FORMAT.md`. A secret is read linearizably, so that it is the
/// one that was stored last when the call began.
package final class ClusterKeychain: KeychainEngine {
  /// `cluster`.
  package let name = "cluster"
  let session: ClusterSession
  let collection: ClusterCollection<KeychainEntry>
  let follower: ClusterFollower
  private let lock: any ClusterLock
  /// The items that others have changed since they were asked for.
  private let news: ItemsNews
  private let keeping = Mutex<HistoryRetention?>(nil)
  /// The items of which a secret was read that does not open.
  let damagedSecrets = Locked<Set<ItemKey>>([])
  let pace = ReplyPace()

  /// `changed` is called when others have changed items: on the watch's thread, so that it must not use the engine itself.
  package init(
    _ session: ClusterSession, lock: any ClusterLock = OpenLock(),
    changed: @escaping @Sendable () -> Void = {}
  ) {
    (self.session, self.lock) = (session, lock)
    let news = ItemsNews(changed)
    self.news = news
    collection = ClusterCollection(session.paths.items, session) { news.note($0) }
    let offline = session.offline
    // One watch for both, as each takes a connection: between the items and the ring is the list of members alone.
    let range = KeyRange(start: session.paths.keychain, end: session.paths.ring + [0])
    follower = ClusterFollower(session, range) { offline?.setServing(false) }
    offline?.follow(collection)
  }

  /// Ends what follows the cluster. No call may follow.
  package func close() { follower.stop() }

  /// Since when the cluster was not heard; nil: it is.
  package var silence: Timestamp? { follower.silence }

  /// Begins to follow the cluster, once. - Throws: `locked`, `unreachable`, `damaged`.
  func follow() throws(StoreError) {
    guard session.keys.isReadable else { throw .locked }
    try follower.start { () throws(StoreError) in
      let revision = try collection.load()
      // The list of members and the ring were read before.
      let keys = session.keysRevision
      return keys > 0 ? min(revision, keys) : revision
    } take: { [weak self] changes, revision in
      self?.take(changes, revision)
    } reread: { [weak self] () throws(StoreError) in
      guard let self else { return 0 }
      let revision = try collection.load()
      if revision > session.keysRevision { session.lookAtMembers() }
      return revision
    }
  }

  private func take(_ changes: [KeyChange], _ revision: Int64) {
    let items = changes.filter { !session.paths.isOfMembers($0.key) }
    if !items.isEmpty { collection.take(items, revision: revision) }
    if items.count < changes.count, revision > session.keysRevision { session.lookAtMembers() }
  }

  /// Every item as the cluster has it now; without the cluster, as it had them last.
  package func items() throws(StoreError) -> [Item] {
    try start()
    try catchUp()
    news.forget()
    return try collection.withCopy { copy throws(StoreError) in
      try copy.items.entries.values.map(\.record.item)
    }
  }

  /// The copy shows what was stored before the call; without the cluster, what it had last.
  package func catchUp() throws(StoreError) {
    try start()
    do throws(StoreError) {
      try session.limited(to: patience) { () throws(StoreError) in try collection.catchUp() }
    } catch .unreachable {
      guard try collection.lookAtCopy({ _ in true }) != nil else {
        throw .unreachable(reason: "the cluster does not answer")
      }
    }
  }

  /// The changes that the watch has reported since. The cluster is not asked.
  package func changes() throws(StoreError) -> ExternalChanges {
    let ids = news.take()
    guard !ids.isEmpty else { return .none }
    let present: [(ItemKey, Item?)]
    do throws(StoreError) {
      present = try collection.withCopy { copy throws(StoreError) in
        let items = try copy.items.entries
        // A part of a change stands for the items that it changes.
        let changed = ids.flatMap { id in copy.view.changes[id].map { $0.map(\.id) } ?? [id] }
        return Set(changed).map { ($0, items[$0]?.record.item) }
      }
    } catch {
      // The next call reports them, when the copy can be read again.
      news.putBack(ids)
      throw error
    }
    return ExternalChanges(present.map { ItemNews($0.0.id, $0.1, origin: .external) })
  }

  package func secret(of item: ItemID) throws(StoreError) -> SecretBytes {
    try secret(of: item, part: SecretPlace.main)
  }

  /// How much of what items were this process keeps; nil: it adds no versions.
  package var retention: HistoryRetention? { keeping.withLock { $0 } }

  /// Holds for the next change.
  package func keep(_ retention: HistoryRetention) { keeping.withLock { $0 = retention } }

  package var limits: KeychainLimits { Self.limits }

  /// The number of this device, as `keyhole cluster members` prints it.
  package var host: ExactString? { ExactString(session.device.text) }

  /// The items that no keychain in a cluster keeps.
  package static let limits = KeychainLimits(
    refusedClasses: Set(Accessibility.allCases.filter(\.isBoundToDevice)),
    refusedFlags: [.biometryCurrentSet, .applicationPassword])

  /// An item that was written without the keys does not open.
  package var authenticatesItems: Bool { true }

  package var locking: any LockingKeychain { ClusterKeychainLock(keys: session.keys, device: lock) }

  package var trust: KeychainTrust {
    guard let problem = problems().first else { return .trusted }
    return .distrusted(problem)
  }

  package var readOnlyReason: String? {
    guard case .wrongCluster(let reason)? = session.seen.refusal ?? follower.refusal else {
      return collection.distrust?.message
    }
    return reason
  }

  /// Before a file is opened to be changed: a shell reports no error of close(2). - Throws: `readOnly`; `unreachable` as `checkAnswers`.
  package func requireWritable() throws(StoreError) {
    if let readOnlyReason { throw .readOnly(reason: readOnlyReason) }
    try session.checkAnswers(since: follower.silence, follower.refusal)
  }

  /// Does nothing: what the cluster has acknowledged is on the disks of a majority of its servers.
  package func synchronize() throws(StoreError) {}

  /// nil: it is on no disk of this machine.
  package func room() throws(StoreError) -> DiskRoom? { nil }

  /// The secrets that were asked for and do not open.
  private var problemOfSecrets: Problem? {
    let damaged = damagedSecrets.use { $0 }
    guard !damaged.isEmpty else { return nil }
    let items = try? collection.lookAtCopy { copy throws(StoreError) in
      let entries = try copy.items.entries
      return damaged.compactMap { entries[$0]?.record.item }
    }
    guard let items = items ?? nil, let first = items.first else { return nil }
    let others = items.count > 1 ? ", and those of \(items.count - 1) more," : ""
    return Problem(
      subject: "the keychain",
      reason:
        "the secret of an item of \(first.identity.folder.string)\(others) was deleted or changed by something else than Keyhole",
      remedy: "`keyhole undo` may have an earlier one; a snapshot of the cluster has it, or store it again")
  }

  package func problems() -> [Problem] {
    // Of a device that was removed that alone is said.
    guard session.isMember else { return [] }
    let problem = session.problem(of: session.seen.refusal ?? follower.refusal)
    guard let reason = readOnlyReason else { return [problem, problemOfSecrets].compactMap { $0 } }
    return [
      problem
        ?? Problem(
          subject: "the keychain", reason: reason,
          remedy: "find out who else writes to the cluster; a snapshot of it brings the keychain back")
    ]
  }
}

/// Which items others have changed.
private final class ItemsNews: Sendable {
  private let ids = Mutex<Set<ItemKey>>([])
  private let changed: @Sendable () -> Void

  init(_ changed: @escaping @Sendable () -> Void) { self.changed = changed }

  func note(_ new: [ItemKey]) {
    ids.withLock { $0.formUnion(new) }
    changed()
  }

  /// They were taken, and not reported.
  func putBack(_ taken: Set<ItemKey>) { ids.withLock { $0.formUnion(taken) } }

  func take() -> Set<ItemKey> {
    ids.withLock { ids in
      defer { ids = [] }
      return ids
    }
  }

  func forget() { ids.withLock { $0 = [] } }
}
