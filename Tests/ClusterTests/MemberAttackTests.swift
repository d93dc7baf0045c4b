import ClusterInMemory
import ClusterRecords
import Crypto
import EtcdClient
import Model
import SecretMemory
import Store
import StoreConformance
import Suites
import Testing
import VaultRecords

@testable import Cluster

/// Forged, swapped and withheld records of members, devices and what they have seen.
@Suite(.timeLimit(.minutes(2))) struct MemberAttackTests {
  private let devices: TestDevices

  init() throws { devices = try TestDevices() }

  @Test func aRequestWithOtherKeysHasAnotherCode() throws {
    let first = try devices.create()
    let code = try devices.request("second")
    let joining = try #require(try first.requests().first)
    // The cluster puts keys of its own in the device's place.
    var forged = try MemberSecret.random().publicKeys()
    forged.id = joining.device.id
    let key = try ClusterPaths(store: "team").request(forged.id)
    devices.cluster.put(key, JoinRequest(device: forged, position: joining.position).encoded)
    let passphrase = try devices.passphrase("first")
    expect(.rejected) { try first.approve(forged.id, code: code, passphrase) }
  }

  @Test func anotherStoreInItsPlaceHasAnotherCode() throws {
    let first = try devices.create()
    _ = try devices.request("second")
    let code = try first.code(of: try #require(try first.requests().first))
    // The cluster shows a store of its own to the device that joins.
    let forged = MemoryCluster()
    _ = try ClusterStore.create(
      MemoryCluster.Client(forged), store: "team", files: devices.files("forger"),
      passphrase: try KeychainSamples.secret("f"),
      cost: .least)
    let device = try #require(try first.requests().first).device
    let paths = try ClusterPaths(store: "team")
    forged.put(paths.request(device.id), JoinRequest(device: device, position: 1).encoded)
    let second = try ClusterStore(MemoryCluster.Client(forged), store: "team", files: devices.files("second"))
    let two = try devices.passphrase("second")
    #expect(throws: StoreError.self) { try second.confirm(code: code, two) }
  }

  @Test func theListOfMembersCantBeForgedOrCut() throws {
    let first = try devices.create()
    _ = try devices.joined("second", first)
    let paths = try ClusterPaths(store: "team")
    let one = try devices.passphrase("first")
    let last = try #require(devices.cluster.value(paths.log(1)))
    // A device that is no member adds itself.
    let forger = try MemberSecret.random()
    var log = MemberLog(store: first.session.keys.store)
    for position in 0..<2 {
      try log.append(try #require(devices.cluster.value(paths.log(UInt64(position)))).value)
    }
    let forged = try log.next(.add(forger.publicKeys()), epoch: 1, identity: log.identity, by: forger)
    devices.cluster.put(paths.log(2), forged)
    let unlocked = try devices.unlocked("first")
    #expect(try Set(unlocked.members().map(\.id)) == Set(first.members().map(\.id)))
    #expect(try unlocked.members().count == 2 && unlocked.hasStrayEntries)
    devices.cluster.delete(paths.log(2))
    _ = try unlocked.members()
    #expect(!unlocked.hasStrayEntries)
    // An entry that was seen is not replaced by one that does not follow.
    devices.cluster.put(paths.log(1), forged)
    expect(.damaged(what: "")) { try devices.locked("first").unlock(one) }
    devices.cluster.delete(paths.log(1))
    expect(.damaged(what: "")) { try devices.locked("first").unlock(one) }
    devices.cluster.put(paths.log(1), last.value)
    try devices.locked("first").unlock(one)
  }

  /// Garbage of someone who can write to the cluster, and has no keys.
  @Test func strayEntriesStopNoMember() throws {
    let first = try devices.create()
    let paths = try ClusterPaths(store: "team")
    let garbage = Array("garbage".utf8)
    devices.cluster.put(paths.log(1), garbage)
    devices.cluster.put(paths.log(0) + [0], garbage)
    devices.cluster.put(paths.log(7), garbage)
    #expect(try first.members().count == 1 && first.hasStrayEntries)
    // A device joins, and another is removed: their entries take the place of what lies there.
    let second = try devices.joined("second", first)
    #expect(try #require(devices.cluster.value(paths.log(1))).value != garbage)
    let one = try devices.passphrase("first")
    devices.cluster.put(paths.log(2), garbage)
    let (suites, keychain) = (first.suites(propertyLists: PropertyLists()), first.keychain())
    defer {
      suites.close()
      keychain.close()
    }
    try first.rotate(removing: [second.device], one, suites: suites, keychain: keychain)
    #expect(try first.members().count == 1 && devices.unlocked("first").members().count == 1)
    // A device that was removed is not asked for its passphrase.
    let removed = try devices.locked("second")
    #expect(removed.unlockRefusal == nil)
    _ = try removed.members()
    expect(.notPermitted(reason: "")) { throw removed.unlockRefusal ?? .notFound }
  }

  /// Two devices at once: the entry that is there is not taken for a stray one.
  @Test func anEntryThatFollowsIsNotReplaced() throws {
    let first = try devices.create()
    let log = try first.fetchLog()
    _ = try devices.joined("second", first)
    let paths = try ClusterPaths(store: "team")
    expect(.notPermitted(reason: "")) { _ = try first.isFree(paths.log(1), after: log) }
  }

  @Test func aListOfMembersNeedsTheSignatureOfAMember() throws {
    let first = try devices.create()
    let store = first.session.keys.store
    var log = MemberLog(store: store)
    try log.append(try #require(devices.cluster.value(ClusterPaths(store: "team").log(0))).value)
    // Another key under the number of a member.
    var seeds = try SecretBytes(count: MemberSecret.length)
    seeds[0] = 1
    let forger = try MemberSecret(id: first.device, seeds)
    let added = try MemberSecret.random().publicKeys()
    let forged = try log.next(.add(added), epoch: 1, identity: log.identity, by: forger)
    expect(.damaged(what: "")) { try log.append(forged) }
    let rotated = try log.next(
      .rotate(removing: []), epoch: 2, identity: [UInt8](repeating: 1, count: 32), by: forger)
    expect(.damaged(what: "")) { try log.append(rotated) }
    #expect(log.count == 1 && log.members.count == 1)
  }

  @Test func aSlotWithAnotherMasterKeyIsRefused() throws {
    let first = try devices.create()
    let store = first.session.keys.store
    let paths = try ClusterPaths(store: "team")
    let member = try #require(first.members().first)
    var log = MemberLog(store: store)
    try log.append(try #require(devices.cluster.value(paths.log(0))).value)
    // As CLUSTER-FORMAT.md says what a slot is bound to: so that only the master key is another one.
    var binding = FieldWriter()
    binding.put(raw: "keyhole/c1".utf8)
    binding.put(1, store)
    binding.put(2, 5 as UInt8)
    binding.put(3, member.id)
    binding.put(5, 1 as UInt32)
    binding.put(6, log.identity)
    let other = try member.seal(SymmetricKey(size: .bits256), boundTo: binding.bytes)
    let good = try #require(devices.cluster.value(paths.slot(first.device))).value
    devices.cluster.put(paths.slot(first.device), good.prefix(5) + other)
    let right = try devices.passphrase("first")
    expect(.damaged(what: "")) { try devices.locked("first").unlock(right) }
    devices.cluster.put(paths.slot(first.device), good)
    try devices.locked("first").unlock(right)
    let forged = try MemberSlot.seal(
      SymmetricKey(size: .bits256), to: try #require(first.members().first), store, epoch: 1)
    devices.cluster.put(try ClusterPaths(store: "team").slot(first.device), forged)
    let one = try devices.passphrase("first")
    expect(.damaged(what: "")) { try devices.locked("first").unlock(one) }
  }

  @Test func whatADeviceHasSeenIsKept() throws {
    let first = try devices.create()
    let suites = first.suites(propertyLists: PropertyLists())
    _ = try suites.create("app")
    let before = devices.cluster.contents
    try suites.set("n", .integer(1), in: "app")
    suites.close()
    try first.saveSeen()
    devices.cluster.forge(before)
    let again = try devices.unlocked("first").suites(propertyLists: PropertyLists())
    defer { again.close() }
    expect(.damaged(what: "")) { _ = try again.read("app") }
  }

  @Test func anotherStoreIsNotAccepted() throws {
    let first = try devices.create()
    let forged = MemoryCluster()
    // A list of members that begins otherwise, with a slot for this device.
    let paths = try ClusterPaths(store: "team")
    let store = first.session.keys.store
    let (master, member) = (SymmetricKey(size: .bits256), try #require(first.members().first))
    let other = try MemberSecret.random()
    var log = MemberLog(store: store)
    let identity = try StoreIdentity.of(master, store)
    for keys in [try other.publicKeys(), member] {
      let entry = try log.next(.add(keys), epoch: 1, identity: identity, by: other)
      forged.put(paths.log(log.count), entry)
      try log.append(entry)
    }
    forged.put(paths.slot(first.device), try MemberSlot.seal(master, to: member, store, epoch: 1))
    let tricked = try ClusterStore(MemoryCluster.Client(forged), store: "team", files: devices.files("first"))
    let one = try devices.passphrase("first")
    expect(.damaged(what: "")) { try tricked.accept(one) }
  }

  /// Servers of another history in the place of those that a device has used: what it has stored would vanish without a word.
  @Test(arguments: [10, 20, 200]) func anotherHistoryIsNotTakenOver(_ commits: Int) throws {
    let first = try devices.create()
    _ = try devices.joined("second", first)
    let (suites, keychain) = (first.suites(propertyLists: PropertyLists()), first.keychain())
    defer {
      suites.close()
      keychain.close()
    }
    _ = try suites.create("app")
    try suites.set("n", .integer(1), in: "app")
    let revision = devices.cluster.revision
    try suites.set("n", .integer(2), in: "app")
    try suites.set("m", .integer(3), in: "app")
    try first.publishSight(suites, keychain)
    try first.saveSeen()
    devices.cluster.restore(revision: revision)
    let other = try devices.unlocked("second").suites(propertyLists: PropertyLists())
    defer { other.close() }
    for number in 1...commits { try other.set("n", .integer(Int128(number)), in: "app") }
    // Whether it runs, or begins again.
    expect(.readOnly(reason: "")) { try suites.set("k", .integer(9), in: "app") }
    #expect(first.session.seen.refusal != nil)
    let again = try devices.unlocked("first").suites(propertyLists: PropertyLists())
    defer { again.close() }
    expect(.readOnly(reason: "")) { _ = try again.read("app") }
    let one = try devices.passphrase("first")
    try devices.locked("first").accept(one)
    let accepted = try devices.unlocked("first").suites(propertyLists: PropertyLists())
    defer { accepted.close() }
    #expect(try accepted.value("n", in: "app") == .integer(Int128(commits)))
  }

  /// A device that was away follows what the others have done meanwhile, by the commits that are kept for that.
  @Test(arguments: [10, 20, 200]) func aDeviceThatWasAwayGoesOn(_ commits: Int) throws {
    let first = try devices.create()
    _ = try devices.joined("second", first)
    let suites = first.suites(propertyLists: PropertyLists())
    _ = try suites.create("app")
    try suites.set("n", .integer(0), in: "app")
    try first.saveSeen()
    suites.close()
    let other = try devices.unlocked("second").suites(propertyLists: PropertyLists())
    defer { other.close() }
    for number in 1...commits { try other.set("n", .integer(Int128(number)), in: "app") }
    let again = try devices.unlocked("first").suites(propertyLists: PropertyLists())
    defer { again.close() }
    #expect(try again.value("n", in: "app") == .integer(Int128(commits)))
    try again.set("n", .integer(0), in: "app")
    // They go with the suite.
    let blocks = {
      self.devices.cluster.contents.filter { String(decoding: $0.key, as: UTF8.self).contains("/o/set/") }
    }
    #expect(blocks().count == (commits + 3) / 16)
    try again.set("n", nil, in: "app")
    again.keep(HistoryRetention(versions: 0, days: 0))
    _ = try again.purge("app", nil)
    try again.remove("app")
    #expect(blocks().isEmpty)
  }

  /// Without a block of commits nothing proves that the head goes on from the one that was seen.
  @Test func commitsThatAreGoneProveNothing() throws {
    let first = try devices.create()
    _ = try devices.joined("second", first)
    let suites = first.suites(propertyLists: PropertyLists())
    _ = try suites.create("app")
    try first.saveSeen()
    suites.close()
    let other = try devices.unlocked("second").suites(propertyLists: PropertyLists())
    defer { other.close() }
    for number in 1...40 { try other.set("n", .integer(Int128(number)), in: "app") }
    let block = try #require(
      devices.cluster.contents.first { String(decoding: $0.key, as: UTF8.self).contains("/o/set/") })
    devices.cluster.delete(block.key)
    let again = try devices.unlocked("first").suites(propertyLists: PropertyLists())
    defer { again.close() }
    expect(.readOnly(reason: "")) { _ = try again.read("app") }
  }

  /// The last commits of a head do not reach back far enough: what the device has said itself is gone.
  @Test func aDeviceMissesItsOwnSight() throws {
    let first = try devices.create()
    let (suites, keychain) = (first.suites(propertyLists: PropertyLists()), first.keychain())
    defer {
      suites.close()
      keychain.close()
    }
    try first.publishSight(suites, keychain)
    #expect(try first.compareSights(suites, keychain).isEmpty)
    let paths = try ClusterPaths(store: "team")
    let before = try #require(devices.cluster.value(paths.seen(first.device)))
    try first.publishSight(suites, keychain)
    #expect(try first.compareSights(suites, keychain).isEmpty)
    // Not where its record is under earlier keys.
    let one = try devices.passphrase("first")
    try first.rotate(one, suites: suites, keychain: keychain)
    #expect(try first.compareSights(suites, keychain).isEmpty)
    devices.cluster.forge([before])
    let findings = try first.compareSights(suites, keychain)
    #expect(findings.map(\.member) == [first.device] && findings.first?.comparison == .isWithheld)
    // It stays so: nothing is stored, and the record is not put again.
    expect(.readOnly(reason: "")) { _ = try suites.create("app") }
    expect(.readOnly(reason: "")) { try first.publishSight(suites, keychain) }
  }

  /// The servers show the second device, under the name `copy`, the state before the first one has set `n`, and let it go on from there: beside the record of the
  /// first one.
  private func makeFork(
    _ first: ClusterStore, _ suites: ClusterSuites
  ) throws -> (cluster: MemoryCluster, store: ClusterStore) {
    // The second device as it is now, once more: it has seen none of what follows.
    try devices.folder.copy("second.device", to: "copy.device")
    try devices.folder.copy("second.seen", to: "copy.seen")
    _ = try suites.create("app")
    let before = devices.cluster.contents
    try suites.set("n", .integer(1), in: "app")
    try first.publishSight(suites, nil)
    let sight = devices.cluster.contents.filter { String(decoding: $0.key, as: UTF8.self).contains("/seen/") }
    #expect(sight.count == 1)
    let forked = MemoryCluster()
    forked.forge(before + sight)
    forked.setRevision(devices.cluster.revision)
    let store = try ClusterStore(MemoryCluster.Client(forked), store: "team", files: devices.files("copy"))
    let passphrase = try devices.passphrase("second")
    try store.unlock(passphrase)
    return (forked, store)
  }

  @Test func sightsTellOfWithheldAndForkedStates() throws {
    let first = try devices.create()
    let second = try devices.joined("second", first)
    let (suites, others) = (
      first.suites(propertyLists: PropertyLists()), second.suites(propertyLists: PropertyLists())
    )
    defer {
      suites.close()
      others.close()
    }
    let (forked, fresh) = try makeFork(first, suites)
    let two = try devices.passphrase("second")
    _ = try others.read("app")
    #expect(try second.compareSights(others, nil).isEmpty)
    let fork = fresh.suites(propertyLists: PropertyLists())
    defer { fork.close() }
    #expect(try fork.value("n", in: "app") == nil)
    #expect(try fresh.compareSights(fork, nil).map(\.comparison) == [.isWithheld])
    try fork.set("n", .integer(2), in: "app")
    #expect(try fresh.compareSights(fork, nil).map(\.comparison) == [.isForked])
    // They show the record that proves it no more, also after a new start.
    let paths = try ClusterPaths(store: "team")
    forked.delete(paths.seen(first.device))
    #expect(try fresh.compareSights(fork, nil).map(\.comparison) == [.isForked])
    #expect(try fresh.otherSights()[first.device]?.isMissing == true)
    try fresh.saveSeen()
    let later = try ClusterStore(MemoryCluster.Client(forked), store: "team", files: devices.files("copy"))
    try later.unlock(two)
    #expect(try later.compareSights(nil, nil).map(\.member) == [first.device])
    #expect(try later.otherSights()[first.device]?.isMissing == true)
  }

  /// The record that proves a fork stays where it is, and is too old to be compared, or is of a suite that is not read here.
  @Test func aForkStaysOneWhateverIsNotCompared() throws {
    let first = try devices.create()
    let second = try devices.joined("second", first)
    let suites = first.suites(propertyLists: PropertyLists())
    defer { suites.close() }
    let (forked, fresh) = try makeFork(first, suites)
    let two = try devices.passphrase("second")
    let fork = fresh.suites(propertyLists: PropertyLists())
    defer { fork.close() }
    try fork.set("n", .integer(2), in: "app")
    #expect(try fresh.compareSights(fork, nil).map(\.comparison) == [.isForked])
    // More commits than a head names: nothing to compare is left.
    for number in 0..<20 { try fork.set("n", .integer(Int128(number + 3)), in: "app") }
    #expect(try fresh.compareSights(fork, nil).map(\.comparison) == [.isForked])
    // After a new start nothing of the suite was read.
    try fresh.saveSeen()
    let later = try ClusterStore(MemoryCluster.Client(forked), store: "team", files: devices.files("copy"))
    try later.unlock(two)
    #expect(try later.compareSights(nil, nil).map(\.comparison) == [.isForked])
    try later.saveSeen()
    _ = second
  }

  /// A commit that was not shown, and is shown later, is no doubt any more, also in the file.
  @Test func whatIsShownLaterIsNoDoubt() throws {
    var record = SeenRecord()
    let (member, key) = (ItemKey.random(), [UInt8]("head".utf8))
    let place = SightPlace(member: member, key: key)
    func doubt(_ revision: Int64, _ comparison: SightComparison, at seconds: Int64 = 100) -> SightDoubt {
      SightDoubt(time: Timestamp(seconds: seconds), revision: revision, comparison: comparison)
    }
    var stored = SeenRecord()
    stored.doubts = [place: doubt(10, .isWithheld)]
    record.doubts = [place: doubt(10, .fits)]
    record.keep(stored)
    #expect(record.doubts[place]?.comparison == .fits)
    // A fork is not ended by the sight that proves it, and is by a later one, whatever the clock of that device says.
    #expect(max(doubt(10, .isForked), doubt(10, .fits)).comparison == .isForked)
    #expect(max(doubt(10, .isForked), doubt(11, .fits, at: 1)).comparison == .fits)
    let secret = SymmetricKey(size: .bits256)
    #expect(try SeenRecord(record.encoded(secret), secret) == record)
  }

  /// A record that no key opens is no excuse, where the store never had earlier keys.
  @Test func aRecordUnderKeysThatNeverWereIsMissing() throws {
    let first = try devices.create()
    let second = try devices.joined("second", first)
    let (suites, others) = (
      first.suites(propertyLists: PropertyLists()), second.suites(propertyLists: PropertyLists())
    )
    defer {
      suites.close()
      others.close()
    }
    try second.publishSight(others, nil)
    #expect(try first.compareSights(suites, nil).isEmpty)
    let paths = try ClusterPaths(store: "team")
    devices.cluster.put(paths.seen(second.device), [ClusterFormat.version, 0, 0, 0, 0, 7])
    #expect(try first.otherSights()[second.device]?.isMissing == true)
  }

  /// A process that had seen the state before does not undo that a person has accepted another one.
  @Test func anUnlockKeepsWhatWasAccepted() throws {
    let first = try devices.create()
    let suites = first.suites(propertyLists: PropertyLists())
    defer { suites.close() }
    _ = try suites.create("app")
    try first.saveSeen()
    let one = try devices.passphrase("first")
    let other = try ClusterStore(
      MemoryCluster.Client(devices.cluster), store: "team", files: devices.files("first"))
    try other.accept(one)
    first.lock()
    expect(.notPermitted(reason: "")) { try first.unlock(one) }
    try? first.saveSeen()
    let last = try ClusterStore(
      MemoryCluster.Client(devices.cluster), store: "team", files: devices.files("first"))
    try last.unlock(one)
    #expect(last.record.accepted == 1)
  }

  /// A record that is gone, or does not open, is named; the next one ends that.
  @Test func aRecordThatIsKeptBackIsMissed() throws {
    let first = try devices.create()
    let second = try devices.joined("second", first)
    #expect(try first.otherSights().isEmpty)
    let paths = try ClusterPaths(store: "team")
    try second.publishSight(nil, nil)
    #expect(try first.compareSights(nil, nil).isEmpty)
    #expect(try first.otherSights()[second.device]?.isMissing == false)
    devices.cluster.delete(paths.seen(second.device))
    #expect(try first.otherSights()[second.device]?.isMissing == true)
    try second.publishSight(nil, nil)
    #expect(try first.otherSights()[second.device]?.isMissing == false)
    // Put once more, it is of another version than it says.
    let shown = try #require(devices.cluster.value(paths.seen(second.device)))
    devices.cluster.put(shown.key, shown.value)
    #expect(try first.otherSights()[second.device]?.isMissing == true)
    #expect(try first.compareSights(nil, nil).isEmpty)
    // Not where it is under keys that were given up.
    try second.publishSight(nil, nil)
    _ = try first.compareSights(nil, nil)
    let suites = first.suites(propertyLists: PropertyLists())
    let keychain = first.keychain()
    defer {
      suites.close()
      keychain.close()
    }
    let one = try devices.passphrase("first")
    try first.rotate(one, suites: suites, keychain: keychain)
    #expect(try first.otherSights()[second.device]?.isMissing == false)
  }
}
