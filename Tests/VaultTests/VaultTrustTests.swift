import GRDB
import Glibc
import Model
import Store
import StoreConformance
import Testing

@testable import Vault
@testable import VaultRecords

/// Which devices have seen a vault, and what they say of it.
@Suite(.timeLimit(.minutes(1))) struct VaultTrustTests {
  private let fixture: VaultFixture
  private let ids: [ItemID]

  init() throws {
    fixture = try VaultFixture()
    ids = try fixture.makeVault()
  }

  /// audit.md, L8.
  @Test(arguments: [true, false]) func missingAnchorOnAKnownDeviceIsDistrust(isEmpty: Bool) throws {
    let old = fixture.snapshot()
    try fixture.open().set(ids[0], [1])
    try fixture.restore(old)
    if isEmpty { try write([], to: fixture.anchor) } else { unsafe unlink(fixture.anchor) }
    let engine = try fixture.open()
    guard case .distrusted(let problem) = engine.trust else {
      Issue.record("\(engine.trust)")
      return
    }
    #expect(problem.reason.contains("is missing"))
    #expect(failure { try engine.set(ids[0], [1]) }?.kind == "readOnly")
    #expect(try engine.comparison().lastSeen == nil)
    let states = try engine.acceptRollback()
    #expect(states.reason != nil && states.present.items == 3)
    #expect(try fixture.open().trust == .trusted)
  }

  /// Without its anchor the vault would be distrusted again.
  @Test func acceptingFailsWhereTheAnchorCanNotBeWritten() throws {
    let anchor = fixture.anchor
    unsafe unlink(anchor)
    let engine = try fixture.open()
    let trust = engine.trust
    unsafe mkdir(anchor, 0o700)
    #expect(failure { _ = try engine.acceptRollback() } != nil)
    #expect(engine.trust == trust)
    unsafe rmdir(anchor)
    _ = try fixture.open().acceptRollback()
    #expect(try fixture.open().trust == .trusted)
  }

  /// The later records of the anchor are written in place: each commit counts, and one that is torn is as good as none.
  @Test(arguments: [2, 3, 4, 5]) func copyOfAMomentAgoIsFoundThoughTheNewestRecordIsTorn(commits: Int) throws
  {
    let engine = try fixture.open()
    let before = fixture.snapshot()
    for number in 0..<commits { try engine.set(ids[0], [UInt8(number)]) }
    let last = fixture.snapshot()
    let anchored = contents(of: fixture.anchor)
    #expect(anchored.count == 1536)
    // After the commit that replaces the file, the records of even and odd generations take turns.
    let newest = try #require(
      [512, 1024].max { left, right in
        anchored[(left + 24)..<(left + 32)].lexicographicallyPrecedes(anchored[(right + 24)..<(right + 32)])
      })
    for length in stride(from: 0, through: 84, by: 12) {
      var torn = anchored
      for index in newest..<(newest + length) { torn[index] ^= 0xFF }
      try fixture.restore(last)
      try write(torn, to: fixture.anchor)
      #expect(try fixture.open().trust == .trusted)
      try fixture.restore(before)
      try write(torn, to: fixture.anchor)
      guard case .distrusted = try fixture.open().trust else {
        Issue.record("\(commits) commits, \(length) bytes torn: an older vault is trusted")
        return
      }
    }
  }

  @Test func newDeviceSaysWhenTheVaultWasChangedLast() throws {
    let changed = try fixture.open().comparison().present.changed
    #expect(try fixture.open().trust == .trusted)
    let elsewhere = try fixture.openElsewhere()
    #expect(elsewhere.trust == .firstUse(lastChange: changed))
    #expect(elsewhere.problems().isEmpty)
    try elsewhere.set(ids[0], [1])
    #expect(try fixture.openElsewhere().trust == .trusted)
    // From now on it is known there.
    removeAll(fixture.root + "/elsewhere")
    guard case .distrusted = try fixture.openElsewhere().trust else {
      Issue.record("trusted")
      return
    }
  }

  @Test func otherDevicesChangesAreNoRollback() throws {
    let (here, there) = (try fixture.open(), try fixture.openElsewhere())
    for round in 0..<3 {
      try there.set(ids[0], [UInt8(round)])
      try here.set(ids[1], [UInt8(round)])
    }
    #expect(try fixture.open().trust == .trusted)
    #expect(try fixture.openElsewhere().trust == .trusted)
  }

  @Test func documentSaysWhatTheManifestHolds() throws {
    let reader = try IndependentReader(
      database: fixture.database, key: contents(of: fixture.key), deviceKey: [])
    let fields = try reader.manifest()
    #expect(fields[3] == [[0, 0, 0, 0, 0, 0, 0, 3]])
    #expect([fields[5]?.first, fields[6]?.first] == (try reader.digests()))
    #expect(fields[7] == [[0]])
    #expect(fields[10]?.count == 1)
  }

  /// audit.md, L2.
  @Test func checkOfSecretsNamesWhatDoesNotOpen() throws {
    let whole = fixture.snapshot()
    let (a, b) = (fixture.literal(ids[0]), fixture.literal(ids[1]))
    let cases = [
      ("DELETE FROM secret WHERE uuid = \(a)", "missing"),
      ("UPDATE secret SET sealed = zeroblob(60) WHERE uuid = \(a)", "damaged"),
      (
        "UPDATE secret SET wrapped = (SELECT wrapped FROM secret WHERE uuid = \(b)) WHERE uuid = \(a)",
        "another item"
      ),
      ("UPDATE secret SET class_key = 77 WHERE uuid = \(a)", "class key"),
    ]
    #expect(try fixture.open().checkSecrets().opened == 3)
    for (edit, reason) in cases {
      try fixture.restore(whole)
      try fixture.edit(edit)
      let check = try fixture.open().checkSecrets()
      #expect(check.damaged.map(\.item.id) == [ids[0]] && check.opened == 2, "\(edit)")
      #expect(check.damaged.first?.reason.contains(reason) == true, "\(check.damaged)")
    }
    try fixture.restore(whole)
    try fixture.edit("INSERT INTO secret SELECT randomblob(16), 0, 1, 1, 1, x'', x'', x''")
    #expect(try fixture.open().checkSecrets().withoutItem == 1)
  }

  @Test func sealsOfFailedTransactionsCount() throws {
    let engine = try fixture.open()
    let before = try engine.comparison().present.generation
    for _ in 0..<5 {
      #expect(failure { try engine.add(KeychainSamples.generic("a"), "") } == .exists)
    }
    try engine.set(ids[0], [1])
    #expect(try engine.comparison().present.generation >= before + 6)
  }
}
