package import ClusterRecords
import EtcdClient
package import Model
import Store
package import VaultRecords

/// A member whose sight of the store is another one than this device's.
package struct SightFinding: Hashable, Sendable {
  package var member: ItemKey
  /// When the member has said so.
  package var time: Timestamp
  package var comparison: SightComparison
}

/// The sights of the members that the cluster shows.
private struct ShownSights {
  /// Those that are authentic.
  var sights: [MemberSight] = []
  /// The members whose records are sealed under keys that were given up: they have said nothing since.
  var ofEarlierKeys: Set<ItemKey> = []
}

extension ClusterStore {
  /// How many suites a sight names: those that were read here.
  private static let mostSuites = 30

  /// Tells the other members what this one has seen. It needs this device's keys. - Throws: `locked`, `unreachable`.
  package func publishSight(_ suites: ClusterSuites?, _ keychain: ClusterKeychain?) throws(StoreError) {
    guard let member = state.use({ $0.member }) else { throw .locked }
    let record = record
    let sight = MemberSight(
      member: member.id, time: .now, revision: record.revision, members: record.members,
      digest: record.digest,
      heads: heads(suites, keychain).map { head in
        MemberSight.Head(key: head.key, version: head.version, operation: head.operations.first)
      })
    let signed = try sight.signed(by: member, of: keys.store)
    let key = paths.seen(member.id)
    do throws(ClusterError) {
      let version = try session.read([KeyRange(key: key)]).values[0].first?.version ?? 0
      let sealed = try seal(signed, key, version + 1)
      let reply = try session.commit(
        ClusterTransaction(
          [.put(key: key, value: sealed, lease: 0)], if: [.version(key: key, equals: version)]))
      if reply.didSucceed { state.use { $0.published = version + 1 } }
    } catch { throw StoreError(error) }
  }

  private func seal(_ signed: [UInt8], _ key: [UInt8], _ version: Int64) throws(ClusterError) -> [UInt8] {
    do throws(StoreError) {
      return try RecordSeal.seal(
        signed, at: RecordPlace(.seen, key, version: UInt64(clamping: version)), for: .members, keys)
    } catch { throw .unavailable(error.message) }
  }

  /// Compares what the other members have seen with what is shown here. A sight that does not open, or that no member has signed,
  /// counts for nothing, as if it was withheld: `otherSights` says how old the others are. One that did not fit counts until a later one of the
  /// same member shows the same collection, and fits.
  ///
  /// - Throws: `unreachable`, `damaged`.
  package func compareSights(
    _ suites: ClusterSuites?, _ keychain: ClusterKeychain?
  ) throws(StoreError) -> [SightFinding] {
    let sights = try shownSights().sights
    // Before the collections, of which one may be damaged.
    let times = sights.filter { $0.member != device }.map(\.time)
    if let latest = times.max() { session.pruning.note(latest) }
    var findings: [SightFinding] = []
    try suites?.catchUpLoaded()
    if let keychain {
      try keychain.start()
      // Not as a reader, who gets what was read before where the servers do not answer.
      try keychain.collection.catchUp()
    }
    let own = heads(suites, keychain)
    let log = try fetchLog()
    noteOtherDevices(log)
    if try isOwnMissing() {
      session.seen.refuse("the cluster does not show any more what this device has stored")
      findings.append(SightFinding(member: device, time: .now, comparison: .isWithheld))
    }
    for sight in sights where sight.member != device {
      var results: [[UInt8]: SightComparison] = [:]
      for head in sight.heads {
        guard let own = own.first(where: { $0.key == head.key }) else { continue }
        results[head.key] = SightComparison(head, own: own.version, own.operations)
      }
      results[[]] = comparison(of: sight, with: log)
      note(sight, results)
    }
    let doubts = state.use { $0.doubts }.filter { $0.value.comparison != .fits }
    let worst = Dictionary(doubts.map { ($0.key.member, $0.value) }) { first, second in
      first.comparison.rawValue < second.comparison.rawValue ? second : first
    }
    return findings
      + worst.filter { log.members[$0.key] != nil }.map {
        SightFinding(member: $0.key, time: $0.value.time, comparison: $0.value.comparison)
      }
  }

  /// Of the list of members.
  private func comparison(of sight: MemberSight, with log: MemberLog) -> SightComparison {
    if sight.members > log.count { return .isWithheld }
    return sight.members == log.count && sight.digest != log.digest ? .isForked : .fits
  }

  private func note(_ sight: MemberSight, _ results: [[UInt8]: SightComparison]) {
    let isNews = state.use { state in
      state.sights[sight.member] = max(state.sights[sight.member] ?? sight.time, sight.time)
      let before = state.doubts
      for (key, comparison) in results {
        let place = SightPlace(member: sight.member, key: key)
        let new = SightDoubt(time: sight.time, revision: sight.revision, comparison: comparison)
        guard let known = before[place] else {
          if comparison != .fits { state.doubts[place] = new }
          continue
        }
        if known < new, known.comparison != .fits || comparison != .fits { state.doubts[place] = new }
      }
      return state.doubts != before
    }
    if isNews { session.seen.setChanged() }
  }

  /// When each other member has last said what it had seen, as far as this device has read it, and whether the cluster shows that record: it is
  /// missing where none is there that is authentic. A record under keys that were given up is not missing.
  ///
  /// - Throws: `unreachable`, `locked`.
  package func otherSights() throws(StoreError) -> [ItemKey: (time: Timestamp, isMissing: Bool)] {
    let shown = try shownSights()
    let present = Set(shown.sights.map(\.member)).union(shown.ofEarlierKeys)
    let members = try fetchLog().members
    var others: [ItemKey: (time: Timestamp, isMissing: Bool)] = [:]
    for sight in shown.sights { others[sight.member] = (sight.time, false) }
    for (member, time) in state.use({ $0.sights }) {
      others[member] = (max(time, others[member]?.time ?? time), !present.contains(member))
    }
    return others.filter { $0.key != device && members[$0.key] != nil }
  }

  /// Whether the last record of this device itself is gone, or an earlier one is there: its changes may be gone too. The key's version says so,
  /// whatever keys the record is sealed under.
  private func isOwnMissing() throws(StoreError) -> Bool {
    guard let published = state.use({ $0.published }) else { return false }
    do throws(ClusterError) {
      let stored = try session.read([KeyRange(key: paths.seen(device))]).values[0].first
      return stored?.version ?? 0 < published
    } catch { throw StoreError(error) }
  }

  /// Where the store has other devices, versions are not deleted by the clock of this one alone.
  func noteOtherDevices(_ log: MemberLog) {
    session.pruning.noteOthers(log.members.values.contains { $0.kind == .device && $0.id != device })
  }

  /// The states that the members have seen last, as far as they are authentic. - Throws: `unreachable`, `locked`.
  package func sights() throws(StoreError) -> [MemberSight] { try shownSights().sights }

  private func shownSights() throws(StoreError) -> ShownSights {
    let values: [KeyValue]
    do throws(ClusterError) { values = try session.read([KeyRange(prefix: paths.allSeen)]).values[0] } catch {
      throw StoreError(error)
    }
    let members = try fetchLog().members
    var shown = ShownSights()
    for value in values {
      guard let member = members.keys.first(where: { paths.seen($0) == value.key }) else { continue }
      do throws(StoreError) {
        let (signed, epoch) = try openedSight(value)
        let sight = try MemberSight(signed, members, of: keys.store)
        guard sight.member == member else { continue }
        state.use { $0.sightEpochs[member] = max(epoch, $0.sightEpochs[member] ?? 0) }
        shown.sights.append(sight)
      } catch {
        // Not of keys before those of a record that was read: that one was replaced.
        let least = state.use { $0.sightEpochs[member] } ?? 1
        if RecordSeal.isOfEarlierKeys(value.value, keys, from: least) { shown.ofEarlierKeys.insert(member) }
      }
    }
    return shown
  }

  /// The signed record of a member, after fetching the keys where another device has made new ones.
  private func openedSight(_ value: KeyValue) throws(StoreError) -> ([UInt8], UInt32) {
    let place = RecordPlace(.seen, value.key, version: UInt64(clamping: value.version))
    do throws(StoreError) {
      return try RecordSeal.open(value.value, at: place, for: .members, keys)
    } catch .locked where session.renewKeys() {
      return try RecordSeal.open(value.value, at: place, for: .members, keys)
    }
  }

  private struct OwnHead {
    var key: [UInt8]
    var version: UInt64
    var operations: [Operation]

    init<Content: CollectionContent>(_ copy: VerifiedCopy<Content>) {
      (key, version, operations) = (copy.place.head, copy.version, copy.head.operations)
    }
  }

  private func heads(_ suites: ClusterSuites?, _ keychain: ClusterKeychain?) -> [OwnHead] {
    var heads: [OwnHead?] = []
    if let suites {
      heads.append((try? suites.names.lookAtCopy { OwnHead($0) }) ?? nil)
      for (_, settings) in suites.state.use({ $0.loaded }).prefix(Self.mostSuites) {
        heads.append((try? settings.lookAtCopy { OwnHead($0) }) ?? nil)
      }
    }
    if let keychain { heads.append((try? keychain.collection.lookAtCopy { OwnHead($0) }) ?? nil) }
    return heads.compactMap { $0 }
  }
}

extension ClusterSuites {
  /// The list of suites, and the suites that were read, are those of the cluster.
  func catchUpLoaded() throws(StoreError) {
    try start()
    try names.catchUp()
    for (_, settings) in state.use({ $0.loaded }) { try settings.catchUp() }
  }
}
