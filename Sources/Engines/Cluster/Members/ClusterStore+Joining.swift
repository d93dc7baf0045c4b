package import ClusterRecords
import Crypto
package import EtcdClient
package import Model
package import SecretMemory
package import VaultRecords

extension ClusterStore {
  /// Asks for this device to belong to a store that is there, and makes its file.
  ///
  /// - Returns: the code that the other device has to be given.
  /// - Throws: `notFound` where there is no such store; `exists` where this device has a file; `unreachable`.
  package static func requestJoining(
    _ cluster: any KeyValueCluster, store name: String, files: DeviceFiles,
    passphrase: borrowing SecretBytes, cost: PassphraseCost = .standard
  ) throws(StoreError) -> String {
    let paths = try ClusterPaths(store: name)
    guard try DeviceFiles.read(files.device) == nil else { throw .exists }
    let entries: [[UInt8]]
    do throws(ClusterError) {
      entries = paths.entries(try cluster.read(RangeRequest(KeyRange(prefix: paths.log))).values)
    } catch {
      throw StoreError(error)
    }
    guard let first = entries.first else { throw .notFound }
    let store = try MemberLog.Entry.store(ofFirst: first)
    let log = try log(entries, from: SeenRecord(), store)
    let member = try MemberSecret.random()
    let device = try DeviceRecord(member, of: store, passphrase: passphrase, cost: cost)
    let request = JoinRequest(device: try member.publicKeys(), position: log.count)
    try DeviceFiles.replace(files.device, with: device.encoded, durably: true)
    let put = KeyOperation.put(key: paths.request(member.id), value: request.encoded, lease: 0)
    do throws(ClusterError) { _ = try cluster.commit(ClusterTransaction([put])) } catch {
      throw StoreError(error)
    }
    return try JoinCode(request.device, log, of: .joining).text()
  }

  /// A person confirms on this device, which asked to join, the code that the approving device shows: from now on this is the
  /// store.
  ///
  /// - Throws: `rejected` for another code, `invalidValue` for a typing error, `locked`, `damaged`, `unreachable`.
  package func confirm(code: String, _ passphrase: borrowing SecretBytes) throws(StoreError) {
    let member = try member(passphrase)
    let (entries, device) = (try fetchEntries(), try member.publicKeys())
    let logs: [MemberLog]
    if let request = try fetchRequest(member.id) {
      guard request.device == device else { throw .rejected }
      logs = [try Self.log(entries, upTo: request.position, keys.store)]
    } else {
      logs = logsBeforeApproval(of: member.id, entries)
      guard !logs.isEmpty else { throw .notFound }
    }
    var confirmed: MemberLog?
    for log in logs where confirmed == nil {
      if try JoinCode(device, log, of: .approving).isTyped(code) { confirmed = log }
    }
    guard let confirmed else { throw .rejected }
    try begin(member, confirmed)
    try saveSeen(durably: true)
    state.use { $0.member = nil }
  }

  /// The code of this device, which has asked; nil: it belongs to the store by now. Where its request is gone, or the keys were made new
  /// since, it asks again.
  ///
  /// - Throws: `rejected`, `locked`, `damaged`, `unreachable`.
  package func renewRequest(_ passphrase: borrowing SecretBytes) throws(StoreError) -> String? {
    let member = try member(passphrase)
    let keys = try member.publicKeys()
    let entries = try fetchEntries()
    let log = try Self.log(entries, from: SeenRecord(), self.keys.store)
    guard log.members[member.id] == nil else { return nil }
    if let request = try fetchRequest(member.id), request.device == keys,
      let before = try? Self.log(entries, upTo: request.position, self.keys.store), before.epoch == log.epoch
    {
      return try JoinCode(keys, before, of: .joining).text()
    }
    let request = JoinRequest(device: keys, position: log.count)
    let put = KeyOperation.put(key: paths.request(member.id), value: request.encoded, lease: 0)
    do throws(ClusterError) { _ = try session.commit(ClusterTransaction([put])) } catch {
      throw StoreError(error)
    }
    return try JoinCode(keys, log, of: .joining).text()
  }

  /// The lists of members that the request of a device may have been made with which was approved meanwhile, the last one first: those of
  /// the epoch in which it was approved.
  private func logsBeforeApproval(of device: ItemKey, _ entries: [[UInt8]]) -> [MemberLog] {
    var log = MemberLog(store: keys.store)
    var before: [MemberLog] = []
    for entry in entries {
      let last = log
      do throws(StoreError) { try log.append(entry) } catch { break }
      if last.epoch != before.last?.epoch { before = [] }
      if last.count > 0 { before.append(last) }
      if log.members[device] != nil { return before.reversed() }
    }
    return []
  }

  /// The first entries of the list of members. - Throws: `damaged` where it has fewer.
  static func log(
    _ entries: [[UInt8]], upTo count: UInt64, _ store: ItemKey
  ) throws(StoreError) -> MemberLog {
    var log = MemberLog(store: store)
    for entry in entries where log.count < count {
      do throws(StoreError) { try log.append(entry) } catch { break }
    }
    guard log.count == count, count > 0 else { throw .damaged(what: "the list of members") }
    return log
  }

  /// The devices that ask to join. - Throws: `unreachable`.
  package func requests() throws(StoreError) -> [JoinRequest] {
    let values: [KeyValue]
    do throws(ClusterError) { values = try session.read([KeyRange(prefix: paths.requests)]).values[0] } catch
    {
      throw StoreError(error)
    }
    return values.compactMap { value in
      guard let request = try? JoinRequest(value.value.span), value.key == paths.request(request.device.id)
      else {
        return nil
      }
      return request
    }
  }

  /// The request whose code a person has typed; nil: there is none. Others may have put any number of forged ones beside it.
  ///
  /// - Throws: `invalidValue` for a typing error; `damaged`, `unreachable`.
  package func request(withCode code: String) throws(StoreError) -> JoinRequest? {
    let (requests, entries) = (try requests(), try fetchEntries())
    // By the positions of requests; nil: there is no such list.
    var logs: [UInt64: MemberLog?] = [:]
    for request in requests {
      if logs[request.position] == nil {
        logs.updateValue(
          try? Self.log(entries, upTo: request.position, keys.store), forKey: request.position)
      }
      guard let found = logs[request.position], let log = found else { continue }
      if try JoinCode(request.device, log, of: .joining).isTyped(code) { return request }
    }
    return nil
  }

  /// Takes this device's request out of the store. - Throws: `unreachable`.
  package func withdrawRequest() throws(StoreError) {
    let delete = KeyOperation.delete(KeyRange(key: paths.request(device)))
    do throws(ClusterError) { _ = try session.commit(ClusterTransaction([delete])) } catch {
      throw StoreError(error)
    }
  }

  private func fetchRequest(_ id: ItemKey) throws(StoreError) -> JoinRequest? {
    try requests().first { $0.device.id == id }
  }

  /// The code that the device of a request has to be given, of what this device sees. - Throws: `damaged`, `unreachable`.
  package func code(of request: JoinRequest) throws(StoreError) -> String {
    _ = try fetchLog()
    let log = try Self.log(fetchEntries(), upTo: request.position, keys.store)
    return try JoinCode(request.device, log, of: .approving).text()
  }

  /// Lets a device belong to the store: a person has given this device's passphrase, and typed the code that the other shows.
  ///
  /// - Throws: `rejected` for another code or passphrase; `notFound` without the request; `notPermitted` where the list of
  ///   keys were made new since, so that the device has to ask again; `locked`, `damaged`, `unreachable`.
  package func approve(
    _ id: ItemKey, code: String, _ passphrase: borrowing SecretBytes
  ) throws(StoreError) {
    let signer = try member(passphrase)
    let log = try fetchLog()
    guard let request = try fetchRequest(id) else { throw .notFound }
    let before = try Self.log(fetchEntries(), upTo: request.position, keys.store)
    guard try JoinCode(request.device, before, of: .joining).isTyped(code) else { throw .rejected }
    // The codes cover the members of then. One that was removed since could show the device a list that goes on otherwise.
    guard before.epoch == log.epoch else {
      throw .notPermitted(
        reason:
          "the keys were made new since the device asked: `keyhole cluster join` on it asks again, and shows another code"
      )
    }
    try add(request.device, log, by: signer, removing: paths.request(id))
  }

  /// A rotation puts a slot for each in one transaction, beside an entry and the ring; etcd takes 128 operations.
  static let mostMembers = 120

  /// Adds a member, and seals the master key to it.
  func add(
    _ new: MemberKeys, _ log: MemberLog, by signer: MemberSecret, removing request: [UInt8]? = nil
  ) throws(StoreError) {
    guard log.members.count < Self.mostMembers else {
      throw .unsupported(
        reason:
          "a store has at most \(Self.mostMembers) devices and recovery codes, as all get new keys in one transaction; remove one first"
      )
    }
    let entry = try log.next(.add(new), epoch: log.epoch, identity: log.identity, by: signer)
    var next = log
    try next.append(entry)
    let slot = try MemberSlot.seal(try keys.copyMaster(), to: new, keys.store, epoch: log.epoch)
    let place = paths.log(log.count)
    var transaction = ClusterTransaction(
      [.put(key: place, value: entry, lease: 0), .put(key: paths.slot(new.id), value: slot, lease: 0)],
      if: [try isFree(place, after: log)])
    if let request { transaction.operations.append(.delete(KeyRange(key: request))) }
    guard try commit(transaction, proving: (place, entry)) else {
      throw Self.haveChanged
    }
    state.use { $0.log = next }
    try? saveSeen(durably: true)
  }

  /// Makes a recovery code, which opens the store like a device. - Throws: `rejected`, `locked`, `unreachable`.
  package func makeRecoveryCode(_ passphrase: borrowing SecretBytes) throws(StoreError) -> SlotSecret {
    let signer = try member(passphrase)
    let code = try RecoveryCode.make()
    try add(try MemberSecret(code, of: keys.store).publicKeys(), try fetchLog(), by: signer)
    return code
  }

  /// Makes this device a member by a recovery code. It trusts the list of members that it finds, as nothing else is left. A device that
  /// has keys for the store, and has lost what it had seen, keeps them.
  ///
  /// - Throws: `rejected` for a code that opens no slot, or another passphrase than that of the keys that are kept; `exists`, `notFound`,
  ///   `unreachable`.
  package static func recover(
    _ cluster: any KeyValueCluster, store name: String, files: DeviceFiles, code: SlotSecret,
    passphrase: borrowing SecretBytes, cost: PassphraseCost = .standard
  ) throws(StoreError) -> ClusterStore {
    let (device, seen) = (try DeviceFiles.read(files.device), try DeviceFiles.read(files.seen))
    let keepsDevice = device != nil && seen == nil
    if !keepsDevice {
      _ = try requestJoining(cluster, store: name, files: files, passphrase: passphrase, cost: cost)
    }
    let store = try ClusterStore(cluster, store: name, files: files)
    let log = try Self.log(try store.fetchEntries(), from: SeenRecord(), store.keys.store)
    let recovery = try MemberSecret(code, of: store.keys.store)
    guard log.members[recovery.id] != nil else { throw .rejected }
    let slot: KeyValue?
    do throws(ClusterError) {
      slot = try store.session.read([KeyRange(key: store.paths.slot(recovery.id))]).values[0].first
    } catch { throw StoreError(error) }
    guard let slot else { throw .rejected }
    try store.keys.add(try MemberSlot.open(slot.value, recovery, log), epoch: log.epoch)
    let member = try store.member(passphrase)
    // Nothing says any more whether the copy is behind what the device had seen.
    DeviceFiles.remove(files.offline)
    try store.begin(member, log)
    if log.members[member.id] == nil {
      try store.add(try member.publicKeys(), log, by: recovery, removing: store.paths.request(member.id))
    }
    try store.saveSeen(durably: true)
    try store.unlock(passphrase)
    return store
  }
}
