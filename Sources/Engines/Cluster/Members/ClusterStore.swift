import ClusterRecords
import Crypto
package import EtcdClient
package import Model
import Platform
package import SecretMemory
import Store
import VaultRecords

/// A store in a cluster, as one device has it: its keys, its engines, and the other members.
///
/// It is opened from a way to the cluster, the store's name and this device's files. Until `unlock` neither names nor values
/// can be read.
package final class ClusterStore: Sendable, ClusterLock {
  struct State {
    var device: DeviceRecord
    /// nil: locked.
    var member: MemberSecret?
    /// The key of the file of what was seen; nil: never unlocked.
    var seenKey: SeenKey?
    var log: MemberLog
    /// The part of the list of members that this device has seen, as its file says. It is not authentic before the keys are there.
    var noted = SeenRecord()
    /// Why it could not be unlocked last.
    var failure: StoreError?
    /// The version of the key of what this device has seen that this process has stored last; nil: it has stored none.
    var published: Int64?
    /// Whether the cluster has entries behind the list of members that no member has signed.
    var hasStrayEntries = false
    /// Whether the store was opened by the copy on this device, as the cluster did not answer.
    var isOffline = false
    /// How often a person had accepted that the cluster was set back, when this process began.
    var accepted: UInt64 = 0
    /// When each other member has last said what it had seen; kept by the file of what was seen.
    var sights: [ItemKey: Timestamp] = [:]
    /// The epoch of the keys of each other member's record that was read last.
    var sightEpochs: [ItemKey: UInt32] = [:]
    /// The members that had a sight which did not fit; kept too, so that servers which show it no more hide nothing.
    var doubts: [SightPlace: SightDoubt] = [:]
  }

  let files: DeviceFiles
  package let session: ClusterSession
  let state: Locked<State>
  /// Held while what was seen is stored: two threads, also of two stores of this process, would write one file.
  private static let saving = Locked(())

  var paths: ClusterPaths { session.paths }
  var keys: ClusterKeyring { session.keys }

  /// `offlineDays`: how long the copy of the keychain on this device is used without the cluster; nil: it keeps none.
  ///
  /// - Throws: `notFound` where this device has no file for the store; `accessDenied`, `damaged`, `invalidName`.
  package convenience init(
    _ cluster: any KeyValueCluster, store: String, files: DeviceFiles, offlineDays: Int? = nil
  ) throws(StoreError) {
    guard let bytes = try DeviceFiles.read(files.device) else { throw .notFound }
    let device = try DeviceRecord(bytes.span)
    let offline = offlineDays.map { OfflineCopy(files.offline, days: $0, of: device.store, device.id) }
    self.init(cluster, try ClusterPaths(store: store), files, device, offline)
    guard let seen = try DeviceFiles.read(files.seen), let noted = try? SeenRecord(unauthenticated: seen)
    else {
      return
    }
    state.use { $0.noted = noted }
  }

  init(
    _ cluster: any KeyValueCluster, _ paths: ClusterPaths, _ files: DeviceFiles, _ device: DeviceRecord,
    _ offline: OfflineCopy? = nil
  ) {
    self.files = files
    let keys = ClusterKeyring(store: device.store)
    state = Locked(State(device: device, member: nil, log: MemberLog(store: device.store)))
    let saving = SeenSaving(files.seen)
    session = ClusterSession(
      cluster, paths, keys, device: device.id, seen: SeenState { saving.save() }, offline: offline)
    saving.setStore(self)
    session.setRenewal { [weak self] in (try? self?.renew()) != nil }
  }

  /// The settings. `changed` is called with the names of suites that others have changed.
  package func suites(
    propertyLists: any PropertyListCoding, changed: @escaping @Sendable (ExactString) -> Void = { _ in }
  ) -> ClusterSuites {
    ClusterSuites(session, propertyLists: propertyLists, changed: changed)
  }

  /// The keychain. `changed` is called when others have changed items.
  package func keychain(changed: @escaping @Sendable () -> Void = {}) -> ClusterKeychain {
    ClusterKeychain(session, lock: self, changed: changed)
  }

  package var needsPassphrase: Bool { state.use { $0.device.takesPassphrase } }

  /// The content of the file of this device's keys, as it was when the store was opened: a file that replaces it later proves nothing.
  /// Without the keys where no passphrase seals them.
  package var deviceRecord: [UInt8] {
    var device = state.use { $0.device }
    if !device.takesPassphrase { device.content = [] }
    return device.encoded
  }

  /// Opens this device's keys with its passphrase, and with them the store's; where the cluster does not answer, by the copy on this
  /// device, if it keeps one: then `isOffline`.
  ///
  /// - Throws: `rejected`, `locked`; `notPermitted` where the device does not belong to the store (yet, or any more);
  ///   `damaged` where the list of members was changed behind what this device has seen; `unreachable`.
  package func unlock(_ passphrase: borrowing SecretBytes) throws(StoreError) {
    do throws(StoreError) { try openDevice(passphrase) } catch {
      if case .damaged = error { state.use { $0.failure = error } }
      throw error
    }
    state.use { $0.failure = nil }
  }

  /// Why the keys in the cluster did not open when that was tried last; nil: they did, or it was not tried.
  package var unlockFailure: StoreError? { state.use { $0.failure } }

  private func openDevice(_ passphrase: borrowing SecretBytes) throws(StoreError) {
    let (member, device) = try openedKeys(passphrase)
    guard let stored = try DeviceFiles.read(files.seen) else {
      throw .notPermitted(reason: Self.notConfirmed)
    }
    let record = try SeenRecord(stored, SeenRecord.key(member, device.store))
    // The state that this process has seen before would be stored again as if it was accepted.
    guard state.use({ $0.seenKey == nil || record.accepted <= $0.accepted }) else {
      throw .notPermitted(
        reason:
          "`keyhole cluster accept` has accepted another state of the cluster since; unmount, and mount again"
      )
    }
    session.seen.take(record.contents)
    state.use { state in
      state.accepted = record.accepted
      state.sights.merge(record.sights) { max($0, $1) }
      state.doubts.merge(record.doubts) { max($0, $1) }
    }
    let patience = isOffline ? ClusterSession.shortPatience : session.cluster.deadline
    do throws(StoreError) { try open(member, record, within: patience) } catch {
      guard error.isNoAnswer, let offline = session.offline else { throw error }
      try open(member, record, offline)
    }
    state.use { $0.device = device }
  }

  /// Why a device without a file of what it has seen can't be unlocked.
  package static let notConfirmed =
    "this device has not confirmed the store's code: `keyhole cluster join` takes it; after a loss of the state folder, "
    + "`keyhole cluster join --recover` takes the recovery code"

  /// Whether there is no file of what this device has seen.
  package var isUnconfirmed: Bool { (try? DeviceFiles.read(files.seen)) == .some(nil) }

  static let isNoMember = StoreError.notPermitted(
    reason: "this device does not belong to the store: it was not approved yet, or was removed")

  /// `notPermitted` where the list of members that was read last does not have this device; nil: it has, or was not read.
  package var unlockRefusal: StoreError? {
    state.use { state in
      state.log.count > 0 && state.log.members[state.device.id] == nil ? Self.isNoMember : nil
    }
  }

  /// Whether the cluster has entries behind the list of members, as it was read last, that no member has signed: they count for nothing.
  package var hasStrayEntries: Bool { state.use { $0.hasStrayEntries } }

  /// Fetches the keys again, after another device has made new ones. - Throws: `locked`.
  package func renew() throws(StoreError) {
    guard let member = state.use({ $0.member }) else { throw .locked }
    do throws(StoreError) { try open(member, record) } catch {
      if case .damaged = error { state.use { $0.failure = error } }
      throw error
    }
    state.use { $0.failure = nil }
  }

  /// The state that this device has seen.
  var record: SeenRecord {
    var record = SeenRecord()
    let contents = session.seen.contents
    (record.cluster, record.revision, record.heads) = (contents.cluster, contents.revision, contents.heads)
    record.chains = contents.chains
    (record.members, record.digest, record.first) = state.use { state in
      state.log.count > 0
        ? (state.log.count, state.log.digest, state.log.first)
        : (state.noted.members, state.noted.digest, state.noted.first)
    }
    (record.accepted, record.sights, record.doubts) = state.use { ($0.accepted, $0.sights, $0.doubts) }
    return record
  }

  func open(
    _ member: MemberSecret, _ record: SeenRecord, within patience: Duration? = nil
  ) throws(StoreError) {
    // Another thread may read a later ring meanwhile.
    let least = session.seen.version(of: paths.ring)
    let stored = try session.limited(to: patience ?? session.cluster.deadline) {
      () throws(StoreError) in try readKeys().keys
    }
    let log = try Self.log(stored.log, from: record, keys.store)
    session.noteMembership(log.members[member.id] != nil)
    guard log.members[member.id] != nil else {
      try? forgetOffline(asOf: log, member)
      throw Self.isNoMember
    }
    // An earlier ring would have keys that were given up taken again.
    guard stored.ringVersion >= least else {
      throw .damaged(
        what: "the list of the store's keys, which was set back behind what this device has seen,")
    }
    try take(stored, log, member)
    session.seen.note(paths.ring, version: stored.ringVersion, nil)
    state.use { $0.isOffline = false }
    session.offline?.note(stored)
    do throws(StoreError) { try saveSeen(durably: true) } catch {
      // On a full disk what was seen earlier stays there, and the next change of it tries again.
      guard error == .noSpace || error == .quotaExceeded, Files.hasName(files.seen) else {
        lock()
        throw error
      }
    }
  }

  /// Takes the store's keys out of their records.
  func take(_ stored: KeyRecords, _ log: MemberLog, _ member: MemberSecret) throws(StoreError) {
    guard let slot = stored.slot, let ring = stored.ring else { throw .damaged(what: "the store's keys") }
    let master = try MemberSlot.open(slot, member, log)
    let opened = ClusterKeyring(store: keys.store)
    try opened.add(master, epoch: log.epoch)
    let keyRing = try KeyRing(opening: ring, at: paths.ring, version: stored.ringVersion, opened)
    try keys.add(master, epoch: log.epoch)
    try keys.setRing(keyRing)
    try begin(member, log)
  }

  /// The device is unlocked.
  func begin(_ member: MemberSecret, _ log: MemberLog) throws(StoreError) {
    let key = try SeenKey(SeenRecord.key(member, keys.store))
    try session.offline?.open(member)
    state.use { ($0.member, $0.log, $0.seenKey) = (member, log, key) }
    noteOtherDevices(log)
  }

  /// The records that open the store, and what has a further key at the same moment. - Throws: `unreachable`.
  func readKeys(with further: [UInt8]? = nil) throws(StoreError) -> (keys: KeyRecords, further: KeyValue?) {
    var ranges = [
      KeyRange(prefix: paths.log), KeyRange(key: paths.slot(device)), KeyRange(key: paths.ring),
    ]
    if let further { ranges.append(KeyRange(key: further)) }
    let (values, revision): ([[KeyValue]], Int64)
    do throws(ClusterError) { (values, revision) = try session.read(ranges) } catch {
      throw StoreError(error)
    }
    session.noteKeys(at: revision)
    let ring = values[2].first
    let keys = KeyRecords(
      log: paths.entries(values[0]), slot: values[1].first?.value, ring: ring?.value,
      ringVersion: UInt64(clamping: ring?.version ?? 0))
    return (keys, further == nil ? nil : values[3].first)
  }

  /// The list of members, which begins with what was seen. It ends before the first entry that does not follow: who writes to the cluster
  /// without the keys would stop all members with it otherwise.
  ///
  /// - Throws: `damaged` where it has no first entry, or another one than was seen, or ends before what was seen.
  static func log(_ entries: [[UInt8]], from record: SeenRecord, _ store: ItemKey) throws(StoreError)
    -> MemberLog
  {
    var log = MemberLog(store: store)
    for entry in entries {
      do throws(StoreError) { try log.append(entry) } catch {
        guard log.count > 0 else { throw error }
        break
      }
      if log.count == record.members, log.digest != record.digest {
        throw .damaged(what: "the list of members")
      }
    }
    guard log.count >= record.members, record.first.isEmpty || log.first == record.first else {
      throw .damaged(what: "the list of members")
    }
    return log
  }

  /// Drops the keys that a lock takes.
  package func lock() {
    keys.lock()
    state.use { $0.member = nil }
  }

  /// Stores what was seen, unless a person has accepted since that the cluster was set back behind it. A lock leaves the key for that.
  ///
  /// - Throws: `locked`, `noSpace`, `system`.
  package func saveSeen(durably: Bool = false) throws(StoreError) {
    try Self.saving.use { (_) throws(StoreError) in try save(durably: durably) }
  }

  private func save(durably: Bool) throws(StoreError) {
    guard let key = state.use({ $0.seenKey }) else { throw .locked }
    _ = session.seen.takeChanged()
    var record = record
    if let stored = try DeviceFiles.read(files.seen), let known = try? SeenRecord(stored, key.symmetric()) {
      guard known.accepted <= record.accepted else { return }
      // Another process of this device may have seen more.
      record.keep(known, without: session.seen.gone)
    }
    // The copy first: one that is behind the file of what was seen is not used.
    session.offline?.catchUp(session.seen)
    let bytes = record.encoded(key.symmetric())
    try DeviceFiles.replace(files.seen, with: bytes, durably: durably)
  }

  /// A person accepts that the cluster was set back, or is another one, or that this device has lost what it had seen: what the
  /// cluster has now is the state to begin with. The store has to be the one that it was, by its first entry.
  ///
  /// - Throws: `rejected`, `locked`; as `unlock`.
  ///
  /// - Returns: whether its list of members does not go on from the one that was seen: a member that was removed since may be one again.
  @discardableResult package func accept(_ passphrase: borrowing SecretBytes) throws(StoreError) -> Bool {
    let member = try member(passphrase)
    guard let stored = try DeviceFiles.read(files.seen) else {
      throw .notPermitted(
        reason:
          "this device has lost what it had seen of the store; `keyhole cluster join --recover` takes the recovery code"
      )
    }
    var record = SeenRecord()
    let known = try SeenRecord(stored, SeenRecord.key(member, keys.store))
    record.first = known.first
    DeviceFiles.remove(files.offline)
    session.seen.accept()
    state.use {
      ($0.log, $0.noted, $0.accepted) = (MemberLog(store: keys.store), record, known.accepted &+ 1)
      ($0.sights, $0.doubts, $0.sightEpochs) = ([:], [:], [:])
    }
    try open(member, record)
    let before = try? Self.log(try fetchEntries(), upTo: known.members, keys.store)
    return before?.digest != known.digest
  }

  /// - Throws: `rejected` for another passphrase than this device's, `locked`.
  package func check(_ passphrase: borrowing SecretBytes) throws(StoreError) { _ = try member(passphrase) }

  /// The device's keys, after its passphrase was given again. - Throws: `rejected`, `locked`.
  func member(_ passphrase: borrowing SecretBytes) throws(StoreError) -> MemberSecret {
    try state.use { $0.device }.open(passphrase)
  }
}

/// The key of the file of what was seen.
final class SeenKey: Sendable {
  private let key: StoredKey

  init(_ key: SymmetricKey) throws(StoreError) {
    do { self.key = try StoredKey(key) } catch { throw StoreError(cluster: error) }
  }

  func symmetric() -> SymmetricKey { key.symmetric() }
}

extension SeenRecord {
  var contents: SeenState.Contents {
    var contents = SeenState.Contents()
    (contents.cluster, contents.revision, contents.heads) = (cluster, revision, heads)
    contents.chains = chains
    return contents
  }
}
