package import ClusterRecords
import Crypto
import EtcdClient
package import Model
package import SecretMemory
import Store
package import VaultRecords

extension ClusterStore {
  /// Takes members away, or none of them, and makes a new master key, which is sealed to those that stay. `finishRotation` seals everything
  /// again.
  ///
  /// A member that is taken away can still read the copies that it has kept, sealed secrets among them.
  /// - Throws: `rejected` for a wrong passphrase; `notPermitted` where the members have changed meanwhile, or for this device
  ///   itself; `locked`, `unreachable`.
  package func beginRotation(
    removing removed: [ItemKey] = [], _ passphrase: borrowing SecretBytes
  ) throws(StoreError) {
    let signer = try member(passphrase)
    guard !removed.contains(signer.id) else {
      throw .notPermitted(reason: "a device can't remove itself; use another one")
    }
    let log = try fetchLog()
    try beginEpoch(log, removed, by: signer)
  }

  /// Both steps.
  package func rotate(
    removing removed: [ItemKey] = [], _ passphrase: borrowing SecretBytes,
    suites: ClusterSuites, keychain: ClusterKeychain
  ) throws(StoreError) {
    try beginRotation(removing: removed, passphrase)
    try finishRotation(suites: suites, keychain: keychain)
  }

  /// Whether a rotation was begun and not finished, so that records under earlier keys are still taken.
  package var isRotating: Bool { keys.hasEarlierKeys }

  private func beginEpoch(_ log: MemberLog, _ removed: [ItemKey], by signer: MemberSecret) throws(StoreError)
  {
    let stored: KeyValue?
    do throws(ClusterError) { stored = try session.read([KeyRange(key: paths.ring)]).values[0].first } catch {
      throw StoreError(error)
    }
    guard let stored else { throw .damaged(what: "the store's keys") }
    let master = SymmetricKey(size: .bits256)
    let entry = try log.next(
      .rotate(removing: removed), epoch: log.epoch + 1, identity: StoreIdentity.of(master, keys.store),
      by: signer)
    var next = log
    try next.append(entry)
    var ring: KeyRing
    do throws(StoreError) {
      ring = try KeyRing(
        opening: stored.value, at: paths.ring, version: UInt64(clamping: stored.version), keys)
    } catch .locked {
      throw Self.makeKeys
    }
    ring.masters[log.epoch] = try keys.copyMaster()
    let opened = ClusterKeyring(store: keys.store)
    try opened.add(master, epoch: next.epoch)
    let sealed = try ring.seal(at: paths.ring, version: UInt64(clamping: stored.version) + 1, opened)
    let place = paths.log(log.count)
    var operations: [KeyOperation] = [
      .put(key: place, value: entry, lease: 0), .put(key: paths.ring, value: sealed, lease: 0),
    ]
    for id in removed { operations.append(.delete(KeyRange(key: paths.slot(id)))) }
    for (id, member) in next.members {
      let slot = try MemberSlot.seal(master, to: member, keys.store, epoch: next.epoch)
      operations.append(.put(key: paths.slot(id), value: slot, lease: 0))
    }
    let transaction = ClusterTransaction(
      operations,
      if: [try isFree(place, after: log), .modified(key: paths.ring, equals: stored.modified)])
    guard try commit(transaction, proving: (place, entry)) else {
      throw Self.haveChanged
    }
    session.seen.note(paths.ring, version: UInt64(clamping: stored.version) + 1, nil)
    try keys.add(master, epoch: next.epoch)
    try keys.setRing(ring)
    state.use { ($0.member, $0.log) = (signer, next) }
    try saveSeen(durably: true)
  }

  /// Seals everything under the present keys, and gives up the earlier ones.
  ///
  /// - Throws: `notPermitted` where something is damaged: all else is sealed under the present keys then, or where other devices make
  ///   new keys meanwhile; `locked`, `unreachable`.
  package func finishRotation(suites: ClusterSuites, keychain: ClusterKeychain) throws(StoreError) {
    for _ in 0..<Self.mostRounds {
      let epoch = keys.epoch
      try sealAll(suites, keychain)
      // Another device has made new keys, which this one has fetched: what was sealed before is to be sealed under those.
      guard keys.epoch == epoch else { continue }
      return try giveUpEarlierKeys(than: epoch)
    }
    throw Self.makeKeys
  }

  /// How often all is sealed again because of other devices' new keys.
  private static let mostRounds = 4

  private static let makeKeys = StoreError.notPermitted(
    reason: "another device makes new keys now; `keyhole cluster rotate` goes on, if that one does not")

  private func sealAll(_ suites: ClusterSuites, _ keychain: ClusterKeychain) throws(StoreError) {
    var damaged = try suites.reseal()
    do throws(StoreError) { try keychain.reseal() } catch {
      guard case .damaged = error else { throw error }
      damaged.append("keychain")
    }
    guard damaged.isEmpty else {
      let paths = damaged.joined(separator: ", ")
      let isOfSuites = damaged.allSatisfy { $0.hasPrefix("defaults/") }
      throw .notPermitted(
        reason:
          "\(paths) \(damaged.count == 1 ? "is" : "are") damaged, and can't be sealed again; all else is. "
          + (isOfSuites
            ? "`keyhole cluster discard` removes a damaged suite"
            : "A snapshot of the cluster brings it back"))
    }
  }

  /// From now on nothing is taken that is sealed under keys of before an epoch, under whose keys everything is sealed.
  private func giveUpEarlierKeys(than epoch: UInt32) throws(StoreError) {
    let stored: KeyValue?
    do throws(ClusterError) { stored = try session.read([KeyRange(key: paths.ring)]).values[0].first } catch {
      throw StoreError(error)
    }
    guard let stored else { throw .damaged(what: "the store's keys") }
    let version = UInt64(clamping: stored.version)
    // The ring of a later epoch has keys that nothing else has: it is not replaced.
    var ring: KeyRing
    do throws(StoreError) {
      ring = try KeyRing(opening: stored.value, at: paths.ring, version: version, keys)
    } catch .locked {
      throw Self.makeKeys
    }
    guard keys.epoch == epoch else { throw Self.makeKeys }
    (ring.oldest, ring.masters) = (epoch, [:])
    let sealed = try ring.seal(at: paths.ring, version: version + 1, keys)
    let transaction = ClusterTransaction(
      [.put(key: paths.ring, value: sealed, lease: 0)],
      if: [.modified(key: paths.ring, equals: stored.modified)])
    guard try commit(transaction, proving: (paths.ring, sealed)) else {
      throw Self.makeKeys
    }
    session.seen.note(paths.ring, version: version + 1, nil)
    try keys.setRing(ring)
    try? saveSeen(durably: true)
  }

  /// The members of the store as they are now. - Throws: `damaged`, `unreachable`.
  package func members() throws(StoreError) -> [MemberKeys] { Array(try fetchLog().members.values) }

  /// This device's number.
  package var device: ItemKey { state.use { $0.device.id } }
}

extension ClusterSuites {
  /// Seals the list of suites and all suites again. - Returns: the paths of those that are damaged.
  func reseal() throws(StoreError) -> [String] {
    var damaged: [String] = []
    do throws(StoreError) {
      try start()
      try names.reseal { copy, id in copy.entries[id]?.kept }
      for id in try names.withCopy({ $0.entries.keys }) {
        do throws(StoreError) { try reseal(id) } catch {
          guard case .damaged = error else { throw error }
          damaged.append("defaults/\(name(of: id)?.string ?? "?")")
        }
      }
    } catch {
      guard case .damaged = error else { throw error }
      damaged.append("defaults")
    }
    return damaged.sorted()
  }

  private func reseal(_ id: ItemKey) throws(StoreError) {
    let settings = settings(of: id)
    let foldJournal = { () throws(StoreError) in try self.foldJournal(of: id, settings) }
    try settings.reseal(foldingBy: foldJournal) { copy, tag in
      guard let name = copy.entries[tag]?.kept, let setting = copy.view.settings[name],
        let modified = setting.modified
      else {
        return copy.view.versions.entries[tag].map { .versions($0) }
      }
      return .setting(SettingRecord(name: name, value: setting.value, modified: modified))
    }
  }
}

extension ClusterKeychain {
  /// Seals all items again, and the keys of the secrets that they have and had.
  func reseal() throws(StoreError) {
    try start()
    let keys = session.keys
    try collection.reseal(foldingBy: foldJournal) { copy, id throws(StoreError) in
      guard var entry = copy.view.items[id] else { return nil }
      try entry.changeStates(of: id) { (state) throws(StoreError) in
        try state.resealKeys(of: id, from: state.record, keys)
      }
      return .item(entry)
    }
  }
}
