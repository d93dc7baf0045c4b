import ClusterRecords
import EtcdClient
import Model
import VaultRecords

/// The keychain while the cluster does not answer, where this device keeps a copy of it.
extension ClusterKeychain {
  /// Begins to follow the cluster, once; where it does not answer, the copy on this device is what there is until it does.
  ///
  /// - Throws: `locked`, `unreachable`, `damaged`.
  func start() throws(StoreError) {
    guard let offline = session.offline else { return try follow() }
    guard session.keys.isReadable else { throw .locked }
    guard !follower.hasStarted else { return }
    do throws(StoreError) {
      try session.limited(to: patience) { () throws(StoreError) in try follow() }
    } catch {
      guard error.isNoAnswer else { throw error }
      try begin(with: offline)
    }
  }

  /// In this time, in seconds, servers that are left have chosen a leader.
  private static let election: Int64 = 5

  /// How long the cluster is waited for.
  var patience: Duration {
    // While the servers choose a leader the watch is without one, and the copy may not have the newest secrets.
    let isSilent =
      follower.silence.map { Timestamp.now.seconds &- $0.seconds > Self.election } ?? false
      || session.offline?.isServing == true
    return isSilent && session.offline != nil ? ClusterSession.shortPatience : session.cluster.deadline
  }

  /// Whether the cluster was not heard since, or what is shown was never compared with it.
  package var isStale: Bool? { follower.silence != nil || session.offline?.isServing == true }

  /// The result of `body`, which asks the cluster; where that does not answer, of `copy`, which uses the copy on this device.
  func fromClusterOrCopy<Result: ~Copyable>(
    _ body: () throws(StoreError) -> Result,
    copy: (OfflineCopy) throws(StoreError) -> Result
  ) throws(StoreError) -> Result {
    guard let offline = session.offline else { return try session.limited(body) }
    do throws(StoreError) {
      let result = try session.limited(to: patience, body)
      offline.setServing(false)
      return result
    } catch {
      guard error.isNoAnswer, session.keys.isReadable else { throw error }
      if let distrust = collection.distrust { throw distrust }
      // Later contents are sealed under keys that this device has not: what it has is over.
      guard !collection.isBehind, session.seen.refusal == nil else { throw error }
      try begin(with: offline)
      return try copy(offline)
    }
  }

  /// The copy on this device takes the place of the cluster, where nothing was read from that. - Throws: `unreachable`.
  private func begin(with offline: OfflineCopy) throws(StoreError) {
    let record = try offline.usable()
    if try collection.lookAtCopy({ _ in true }) == nil {
      guard record.items.version >= session.seen.version(of: collection.place.head) else {
        offline.refuse("it is older than what this device has seen")
        _ = try offline.usable()
        return
      }
      do throws(StoreError) {
        collection.begin(with: try VerifiedCopy(collection.place, record.items, session.keys))
      } catch {
        offline.refuse(error.message)
        _ = try offline.usable()
      }
    }
    offline.setServing(true)
  }
}

extension VerifiedCopy<KeychainEntry> {
  /// The copy, to be kept by this device. - Throws: `tooLarge`.
  var record: CollectionRecord {
    get throws(StoreError) {
      try record { id in view.items[id].map { .item($0) } ?? .changes(view.changes[id] ?? []) }
    }
  }

  /// The secrets that the items have. - Throws: `tooLarge`.
  var places: Set<SecretPlace> {
    get throws(StoreError) {
      var places: Set<SecretPlace> = []
      for (id, entry) in try items.entries { places.formUnion(entry.record.places(id)) }
      return places
    }
  }
}
