package import ClusterRecords
import Crypto
package import EtcdClient
package import Model
import Platform
package import SecretMemory
package import VaultRecords

extension ClusterStore {
  /// Makes a store in a cluster, to which this device belongs. It is unlocked. Where an earlier call was interrupted, it goes on.
  ///
  /// `passphrase` seals this device's keys; empty: none does.
  /// - Throws: `exists` where the store is there, and whole; `rejected` for another passphrase than that of the call that was
  ///   interrupted; `unreachable`, `noSpace`, `invalidName`.
  package static func create(
    _ cluster: any KeyValueCluster, store name: String, files: DeviceFiles,
    passphrase: borrowing SecretBytes, cost: PassphraseCost = .standard
  ) throws(StoreError) -> ClusterStore {
    let paths = try ClusterPaths(store: name)
    if let bytes = try DeviceFiles.read(files.device) {
      let store = ClusterStore(cluster, paths, files, try DeviceRecord(bytes.span))
      try store.goOnCreating(passphrase)
      return store
    }
    let (member, id) = (try MemberSecret.random(), ItemKey.random())
    let device = try DeviceRecord(member, of: id, passphrase: passphrase, cost: cost)
    let store = ClusterStore(cluster, paths, files, device)
    try store.begin(member)
    try DeviceFiles.replace(files.device, with: device.encoded, durably: true)
    do throws(StoreError) {
      try store.commitBeginning(member)
    } catch {
      // Where it may have been made, the next call goes on.
      if !error.isOutcomeUnknown { _ = try? Files.remove(files.device) }
      throw error
    }
    try store.saveSeen(durably: true)
    return store
  }

  /// Goes on where making the store was interrupted: nothing is there yet, or all but a recovery code.
  private func goOnCreating(_ passphrase: borrowing SecretBytes) throws(StoreError) {
    let entries = try fetchEntries()
    let isSeen = try DeviceFiles.read(files.seen) != nil
    guard entries.isEmpty else {
      // Another store has the name, or this device only asked to belong to it.
      guard let log = try? Self.log(entries, from: SeenRecord(), keys.store),
        log.members[device]?.kind == .device,
        !log.members.values.contains(where: { $0.kind == .recoveryCode })
      else { throw .exists }
      if isSeen { return try unlock(passphrase) }
      let member = try member(passphrase)
      // Of a store of which nothing was seen, the one that this device has made, and that no other member has changed.
      guard log.members.count == 1 else { throw .exists }
      return try open(member, SeenRecord())
    }
    // The store that this device has seen is not there any more: it is not one that was never made.
    guard !isSeen else { throw .exists }
    let member = try member(passphrase)
    try begin(member)
    try commitBeginning(member)
    try saveSeen(durably: true)
  }

  private func begin(_ member: MemberSecret) throws(StoreError) {
    let master = SymmetricKey(size: .bits256)
    try keys.add(master, epoch: 1)
    try keys.setRing(KeyRing(index: SymmetricKey(size: .bits256), oldest: 1))
    try begin(member, MemberLog(store: keys.store))
  }

  private func commitBeginning(_ member: MemberSecret) throws(StoreError) {
    let master = try keys.copyMaster()
    let identity = try StoreIdentity.of(master, keys.store)
    var log = MemberLog(store: keys.store)
    let first = try log.next(.add(member.publicKeys()), epoch: 1, identity: identity, by: member)
    try log.append(first)
    var (conditions, operations) = try session.emptyCollections()
    let slot = try MemberSlot.seal(master, to: try member.publicKeys(), keys.store, epoch: 1)
    let ring = try keys.copyRing().seal(at: paths.ring, version: 1, keys)
    for (key, value) in [(paths.log(0), first), (paths.slot(member.id), slot), (paths.ring, ring)] {
      conditions.append(.created(key: key, equals: 0))
      operations.append(.put(key: key, value: value, lease: 0))
    }
    guard try commit(ClusterTransaction(operations, if: conditions), proving: (paths.log(0), first)) else {
      throw .exists
    }
    state.use { $0.log = log }
  }

  /// Makes a transaction that puts a value which no other client puts; an unknown outcome is looked up. False: a condition did not hold.
  func commit(
    _ transaction: ClusterTransaction, proving: (key: [UInt8], value: [UInt8])
  ) throws(StoreError) -> Bool {
    do throws(ClusterError) {
      return try session.commit(transaction).didSucceed
    } catch .outcomeUnknown(let reason) {
      do throws(ClusterError) {
        if try isThere(proving) { return true }
        if try session.commit(transaction).didSucceed { return true }
        // The first one may have been made in between.
        return try isThere(proving)
      } catch {
        // The first one may still be made.
        throw StoreError(.outcomeUnknown(reason))
      }
    } catch { throw StoreError(error) }
  }

  private func isThere(_ proving: (key: [UInt8], value: [UInt8])) throws(ClusterError) -> Bool {
    try session.read([KeyRange(key: proving.key)]).values[0].first?.value == proving.value
  }

  /// Reads the list of members as it is now, which goes on from the one that is known. - Throws: `damaged`, `unreachable`.
  package func fetchLog() throws(StoreError) -> MemberLog {
    let stored = try fetchStoredEntries()
    let log = try Self.log(paths.entries(stored), from: record, keys.store)
    session.noteMembership(log.members[device] != nil)
    state.use { ($0.log, $0.hasStrayEntries) = (log, UInt64(stored.count) > log.count) }
    return log
  }

  /// The entries as they are stored; which of them count is for `log` to say.
  func fetchEntries() throws(StoreError) -> [[UInt8]] { paths.entries(try fetchStoredEntries()) }

  private func fetchStoredEntries() throws(StoreError) -> [KeyValue] {
    do throws(ClusterError) { return try session.read([KeyRange(prefix: paths.log)]).values[0] } catch {
      throw StoreError(error)
    }
  }

  /// The condition under which the next entry may be put at its place: it is free, or has an entry that does not follow.
  ///
  /// - Throws: `notPermitted` where another device has put one that follows; `unreachable`.
  package func isFree(_ place: [UInt8], after log: MemberLog) throws(StoreError) -> KeyCondition {
    let stored: KeyValue?
    do throws(ClusterError) { stored = try session.read([KeyRange(key: place)]).values[0].first } catch {
      throw StoreError(error)
    }
    guard let stored else { return .created(key: place, equals: 0) }
    var next = log
    do throws(StoreError) { try next.append(stored.value) } catch {
      return .modified(key: place, equals: stored.modified)
    }
    throw Self.haveChanged
  }

  static var haveChanged: StoreError {
    .notPermitted(reason: "the members have changed meanwhile; try again")
  }
}

extension ClusterPaths {
  /// The entries of the list of members, in their order, up to the first place without one. What else lies there is none.
  func entries(_ stored: [KeyValue]) -> [[UInt8]] {
    let values = Dictionary(stored.map { ($0.key, $0.value) }) { first, _ in first }
    return (0..<UInt64(stored.count)).lazy.map { values[log($0)] }.prefix { $0 != nil }.compactMap { $0 }
  }
}
