import ClusterRecords
package import Model
import Platform
import VaultRecords

/// The copy of a store's keychain on this device, for the time when the cluster does not answer: a sealed file.
///
/// It is used only while it is not behind what this device has seen, and the cluster was read within `days`.
package final class OfflineCopy: Sendable {
  struct State {
    /// nil: this device was never unlocked.
    var key: SeenKey?
    /// The content of the file; nil: there is none, or it was not read yet.
    var record: OfflineRecord?
    var isRead = false
    /// When the age of the record was known, and how old it was, in seconds: a clock that is set back does not make it younger.
    var known: (at: ContinuousClock.Instant, age: Int64)?
    /// The records that open the store, as they were read last.
    var keys: KeyRecords?
    /// The keychain of which it is a copy.
    var source: ClusterCollection<KeychainEntry>?
    /// Why there is no copy that can be used; nil: there is one, or it was not read yet.
    var fault: Fault?
    /// This device does not belong to the store: no copy is stored before it was opened again.
    var hasEnded = false
    /// When the keychain was too large for a copy last.
    var refused: ContinuousClock.Instant?
    /// The cluster did not answer, and the copy was used since.
    var isServing = false
  }

  /// Why there is no copy that can be used.
  enum Fault: Hashable, Sendable {
    case expired
    /// It was changed, or is behind what this device has seen.
    case refused(String)
    case tooLarge
    /// It can't be stored.
    case failed(String)
  }

  /// How long it is used after the cluster was read last.
  let days: Int
  private let path: String
  private let store: ItemKey
  private let device: ItemKey
  let state = Locked(State())
  /// Held while the file is replaced.
  private let storing = Locked(())
  /// Held by the one thread that asks the cluster for what the copy misses.
  let updating = Locked(())

  init(_ path: String, days: Int, of store: ItemKey, _ device: ItemKey) {
    (self.path, self.days, self.store, self.device) = (path, days, store, device)
  }

  /// The copy is one of this keychain.
  func follow(_ collection: ClusterCollection<KeychainEntry>) { state.use { $0.source = collection } }

  /// This device was unlocked: from now on the file can be read and replaced. A lock does not take its key, so that it follows the
  /// cluster; what is sealed in it stays sealed.
  func open(_ member: MemberSecret) throws(StoreError) {
    let key = try SeenKey(OfflineRecord.key(member, store))
    state.use { ($0.key, $0.hasEnded) = ($0.key ?? key, false) }
  }

  /// The records that open the store, as the cluster has them now.
  func note(_ keys: KeyRecords) { state.use { $0.keys = keys } }

  var isServing: Bool { state.use { $0.isServing } }

  func setServing(_ isServing: Bool) { state.use { $0.isServing = isServing } }
}

// MARK: - Reading

extension OfflineCopy {
  /// The copy, as far as it may be used now. - Throws: `unreachable`, with the reason why it may not.
  func usable() throws(StoreError) -> OfflineRecord {
    read()
    let (record, fault) = state.use { state -> (OfflineRecord?, Fault?) in
      if let record = state.record, isOver(record, state) { state.fault = .expired }
      return (state.record, state.fault)
    }
    if fault == .expired { discard(because: .expired) }
    guard let record, fault?.forbidsUse != true else {
      throw .unreachable(reason: "\(StoreError.noAnswer), and \(fault.reason(days))")
    }
    return record
  }

  /// A secret as it is sealed in the copy; nil: it is not there. - Throws: as `usable`.
  func secret(_ place: SecretPlace) throws(StoreError) -> [UInt8]? { try usable().secrets[place] }

  /// Reads the file, once.
  func read() {
    state.use { state in
      guard !state.isRead, let key = state.key else { return }
      state.isRead = true
      do throws(StoreError) {
        guard let file = try DeviceFiles.read(path) else { return }
        let record = try OfflineRecord(opening: file, key.symmetric(), of: store, device)
        state.record = record
        let (now, age) = (ContinuousClock.now, Timestamp.now.seconds &- record.time.seconds)
        state.known = (now, max(age, 0))
      } catch { state.fault = .refused(error.message) }
    }
  }

  /// How far the clock may be before the time of the copy, in seconds.
  private static let leeway: Int64 = 300

  private func isOver(_ record: OfflineRecord, _ state: State) -> Bool {
    let age = Timestamp.now.seconds &- record.time.seconds
    guard age >= -Self.leeway else { return true }
    let counted = state.known.map { $0.age + $0.at.duration(to: .now).components.seconds } ?? 0
    return max(age, counted) > Int64(days) * 86_400
  }

  /// The copy may not be used, and is replaced when the cluster answers.
  func refuse(_ reason: String) {
    state.use { state in
      (state.record, state.fault) = (nil, .refused(reason))
    }
  }
}

// MARK: - Storing

extension OfflineCopy {
  /// Stores a copy in the place of the one before; it is on the disk when this returns.
  ///
  /// - Throws: `tooLarge`, `noSpace`, `system`; `locked` before the first unlock.
  func store(_ record: OfflineRecord) throws(StoreError) {
    try storing.use { (_) throws(StoreError) in try replace(with: record) }
  }

  private func replace(with record: OfflineRecord) throws(StoreError) {
    guard let key = state.use({ $0.hasEnded ? nil : $0.key }) else { throw .locked }
    let file: [UInt8]
    do throws(StoreError) { file = try record.sealed(key.symmetric(), of: store, device) } catch {
      if case .tooLarge = error {
        discard(because: .tooLarge)
        state.use { $0.refused = .now }
      }
      throw error
    }
    var failure: StoreError?
    do throws(StoreError) { try DeviceFiles.replace(path, with: file, durably: true) } catch {
      // The one on the disk is behind. This process has a whole one.
      DeviceFiles.remove(path)
      failure = error
    }
    let hasEnded = state.use { state in
      guard !state.hasEnded else { return true }
      (state.record, state.isRead) = (record, true)
      state.fault = failure.map { .failed($0.message) }
      state.known = (.now, max(Timestamp.now.seconds &- record.time.seconds, 0))
      return false
    }
    if hasEnded { DeviceFiles.remove(path) }
    if let failure { throw failure }
  }

  /// This device does not belong to the store: the copy is removed, and nothing of it is used any more.
  func end() {
    state.use { $0.hasEnded = true }
    discard(because: nil)
  }

  private func discard(because fault: Fault?) {
    DeviceFiles.remove(path)
    state.use { state in
      (state.record, state.fault, state.isRead) = (nil, fault, true)
    }
  }
}

extension OfflineCopy.Fault {
  /// Whether a copy that is there is not used.
  fileprivate var forbidsUse: Bool {
    if case .failed = self { false } else { true }
  }
}

extension OfflineCopy.Fault? {
  /// As a clause.
  func reason(_ days: Int) -> String {
    switch self {
    case nil: "there is no copy of its secrets on this device"
    case .expired: "the copy of its secrets on this device is older than \(days) days, and was removed"
    case .refused(let reason): "the copy of its secrets on this device is not used: \(reason)"
    case .tooLarge:
      "its keychain has more than \(OfflineRecord.largest >> 20) MiB, so there is no copy of it on this device"
    case .failed(let reason): "no copy of its secrets could be stored on this device: \(reason)"
    }
  }
}

// MARK: - State

/// The state of the copy, for `keyhole status` and `keyhole doctor`.
package struct OfflineState: Sendable {
  package enum Condition: String, Sendable {
    /// There is none yet.
    case missing
    case kept
    /// The cluster does not answer, and secrets are those of the copy.
    case used
    case expired
    case refused
    case tooLarge = "too-large"
    /// It can't be stored.
    case failed
  }

  package let condition: Condition
  /// When the cluster was read for it last; nil: there is no copy.
  package let time: Timestamp?
  /// When it can't be used any more.
  package let end: Timestamp?
  /// How many secrets it has.
  package let count: Int
  /// Why it can't be used, as a clause; empty: the condition says it.
  package let reason: String
}

extension OfflineCopy {
  /// The state for `keyhole status`.
  package var report: OfflineState {
    _ = try? usable()
    return state.use { state in
      let condition: OfflineState.Condition =
        switch state.fault {
        case nil: state.record == nil ? .missing : state.isServing ? .used : .kept
        case .expired: .expired
        case .refused: .refused
        case .tooLarge: .tooLarge
        case .failed: .failed
        }
      let time = state.record?.time
      return OfflineState(
        condition: condition, time: time,
        end: time.map { Timestamp(seconds: $0.seconds &+ Int64(days) &* 86_400) },
        count: state.record?.secrets.count ?? 0, reason: state.fault == nil ? "" : state.fault.reason(days))
    }
  }
}
