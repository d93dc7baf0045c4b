import ClusterRecords
import EtcdClient
package import Model
import VaultRecords

/// The copy of the keychain on this device, as the store opens and keeps it.
extension ClusterStore {
  /// Whether the store was opened by the copy on this device, and not by the cluster since.
  package var isOffline: Bool { state.use { $0.isOffline } }

  /// Opens the store by the cluster, after it was opened by the copy. - Throws: as `unlock`; `locked` after a lock.
  package func connect() throws(StoreError) {
    try renew()
    session.offline?.setServing(false)
  }

  /// Opens the store by the copy on this device. - Throws: `unreachable`, with the reason where it may not be used.
  func open(_ member: MemberSecret, _ record: SeenRecord, _ offline: OfflineCopy) throws(StoreError) {
    try offline.open(member)
    let copy = try offline.usable()
    do throws(StoreError) {
      guard copy.cluster == record.cluster, copy.items.version >= record.heads[paths.items.head] ?? 0 else {
        throw .damaged(what: "the copy, which is older than what this device has seen,")
      }
      let log = try Self.log(copy.keys.log, from: record, keys.store)
      guard log.members[member.id] != nil else { throw .damaged(what: "the copy") }
      try take(copy.keys, log, member)
    } catch {
      offline.refuse(error.message)
      _ = try offline.usable()
    }
    offline.note(copy.keys)
    offline.setServing(true)
    state.use { $0.isOffline = true }
  }

  /// This device does not belong to the store by a list of members: the copy goes, and one that is put back is behind what was seen.
  func forgetOffline(asOf log: MemberLog, _ member: MemberSecret? = nil) throws(StoreError) {
    guard let offline = session.offline else { return }
    offline.end()
    let key = try member.map { (member) throws(StoreError) in
      try SeenKey(SeenRecord.key(member, keys.store))
    }
    state.use { state in
      state.log = log
      state.seenKey = key ?? state.seenKey
    }
    try saveSeen(durably: true)
  }

  /// This device does not belong to the store any more, as `members` has said: the copy goes.
  package func forgetOffline() { try? forgetOffline(asOf: state.use { $0.log }) }
}

// MARK: - Keeping

extension ClusterStore {
  /// After so many seconds the copy is stored again, also where nothing has changed.
  private static let interval: Int64 = 3_600
  /// How many secrets are read at once.
  private static let page = 50

  /// Brings the copy on this device up to what the cluster has. The cluster is asked only where something has changed, or after an hour.
  package func updateOffline() {
    guard let offline = session.offline else { return }
    // A failure is in the report, or ends with the next attempt.
    offline.updating.use { _ in try? update(offline) }
  }

  /// How often the keychain is read again that was changed meanwhile.
  private static let attempts = 5

  private func update(_ offline: OfflineCopy) throws(StoreError) {
    for _ in 0..<Self.attempts where try !isUpToDate(offline) {}
  }

  /// Makes the copy that of the keychain as it is. False: that was changed meanwhile.
  private func isUpToDate(_ offline: OfflineCopy) throws(StoreError) -> Bool {
    guard let source = offline.source, session.seen.refusal == nil, source.distrust == nil,
      !source.isBehind, !isOffline, let copy = try source.lookAtCopy({ $0 })
    else { return true }
    offline.read()
    let wanted = try copy.places
    guard offline.isDue(copy.version, wanted, Self.interval) else { return true }
    let (stored, head) = try session.limited { () throws(StoreError) in
      try readKeys(with: copy.place.head)
    }
    let log = try Self.log(stored.log, from: record, keys.store)
    guard log.members[device] != nil else {
      try forgetOffline(asOf: log)
      return true
    }
    guard let head, let cluster = session.seen.contents.cluster else { return true }
    guard head.modified == copy.modified else {
      try session.limited { () throws(StoreError) in try source.waitFor(head.modified) }
      return false
    }
    offline.note(stored)
    let time = Timestamp.now
    let secrets = try secrets(wanted, offline)
    try offline.store(
      OfflineRecord(cluster: cluster, time: time, keys: stored, items: try copy.record, secrets: secrets))
    return true
  }

  /// The sealed secrets of items: those that the copy has, and the others from the cluster. One that was deleted meanwhile is left out.
  private func secrets(
    _ wanted: Set<SecretPlace>, _ offline: OfflineCopy
  ) throws(StoreError) -> [SecretPlace: [UInt8]] {
    var secrets = offline.secrets.filter { wanted.contains($0.key) }
    let missing = wanted.filter { secrets[$0] == nil }
    var rest = ArraySlice(Array(missing))
    while !rest.isEmpty {
      let page = Array(rest.prefix(Self.page))
      rest = rest.dropFirst(Self.page)
      let values = try session.limited { () throws(StoreError) in
        do throws(ClusterError) {
          return try session.read(page.map { KeyRange(key: paths.secret($0)) }).values
        } catch { throw StoreError(error) }
      }
      for (place, values) in zip(page, values) {
        if let value = values.first, value.version == 1 { secrets[place] = value.value }
      }
    }
    return secrets
  }
}

extension OfflineCopy {
  fileprivate var source: ClusterCollection<KeychainEntry>? { state.use { $0.source } }

  /// The sealed secrets.
  fileprivate var secrets: [SecretPlace: [UInt8]] { state.use { $0.record?.secrets ?? [:] } }

  /// Whether the copy is not the one of a version of the keychain with these secrets, or was stored longer ago.
  fileprivate func isDue(_ version: UInt64, _ wanted: Set<SecretPlace>, _ interval: Int64) -> Bool {
    state.use { state in
      if state.fault == .tooLarge, let last = state.refused, last + .seconds(interval) > .now { return false }
      guard let record = state.record, state.fault == nil, record.items.version == version,
        record.secrets.count == wanted.count, wanted.allSatisfy({ record.secrets[$0] != nil })
      else { return true }
      return (Timestamp.now.seconds &- record.time.seconds).magnitude >= interval.magnitude
    }
  }

  /// Stores the keychain as this process has it, where the file is behind what was seen: without the secrets that it does not have yet.
  func catchUp(_ seen: SeenState) {
    let (source, record, keys) = state.use { ($0.source, $0.record, $0.keys) }
    guard let source, var record, let keys, let copy = try? source.lookAtCopy({ $0 }),
      record.items.version < copy.version,
      record.items.version < seen.version(of: copy.place.head), let items = try? copy.record,
      let wanted = try? copy.places
    else { return }
    (record.items, record.keys) = (items, keys)
    record.secrets = record.secrets.filter { wanted.contains($0.key) }
    try? store(record)
  }
}
