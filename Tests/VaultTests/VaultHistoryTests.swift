import Foundation
import GRDB
import Model
import SecretMemory
import StoreConformance
import Testing

@testable import Store
@testable import Vault
@testable import VaultDatabase
@testable import VaultRecords

/// The versions of items: how they are made, opened, restored and deleted.
struct VaultHistoryTests {
  private let fixture: VaultFixture
  private let engine: VaultEngine

  init() throws {
    fixture = try VaultFixture()
    engine = try fixture.openKeepingVersions()
  }

  private func set(_ id: ItemID, _ text: String) throws {
    _ = try engine.rewrite(id, readingSecret: false) { _, secret throws(StoreError) in
      secret = try KeychainSamples.secretOrFail(text)
    }
  }

  private func values(_ identity: ItemIdentity) throws -> [String] {
    try engine.versions(of: identity).map {
      String(decoding: try engine.bytes(of: $0.item.id), as: UTF8.self)
    }
  }

  private func expectSound(_ engine: VaultEngine, sourceLocation: SourceLocation = #_sourceLocation) throws {
    let check = try engine.checkSecrets()
    #expect(check.damaged.isEmpty && check.withoutItem == 0, sourceLocation: sourceLocation)
    let again = try fixture.openKeepingVersions()
    #expect(again.trust == .trusted && again.problems().isEmpty, sourceLocation: sourceLocation)
    // Each row of a secret is that of an item or of a version.
    let places = try again.withSession { session throws(StoreError) in
      try session.connection.read { database in
        var places: Set<SecretPlace> = []
        for key in try session.items(database).allKeys() {
          guard let record = try session.items(database).fetch(key)?.record else { continue }
          places.formUnion(record.places(key))
          for revision in record.versions {
            places.formUnion(try session.versions(database).fetch(key, revision).places(key))
          }
        }
        return places
      }
    }
    #expect(try fixture.number("SELECT count(*) FROM secret") == places.count, sourceLocation: sourceLocation)
  }

  @Test func eachChangeOfAValueIsAVersion() throws {
    let item = try engine.add(KeychainSamples.generic("a"), "one")
    #expect(try engine.versions(of: item.identity).isEmpty)
    try set(item.id, "two")
    try set(item.id, "three")
    let versions = try engine.versions(of: item.identity)
    #expect(versions.map(\.changes) == [.value, .value])
    #expect(versions[0].number < versions[1].number)
    #expect(try values(item.identity) == ["one", "two"])
    #expect(try engine.bytes(of: item.id) == Array("three".utf8))
    try expectSound(engine)
  }

  @Test func onlySoManyAreKept() throws {
    let item = try engine.add(KeychainSamples.generic("a"), "0")
    for number in 1...14 { try set(item.id, "\(number)") }
    #expect(try values(item.identity) == (4...13).map(String.init))
    #expect(try fixture.number("SELECT count(*) FROM version") == 10)
    #expect(try fixture.number("SELECT count(*) FROM secret") == 11)
    try expectSound(engine)
  }

  @Test func aSeriesOfAttributesIsOneVersion() throws {
    let item = try engine.add(KeychainSamples.generic("a"), "one")
    for number in 1...5 {
      _ = try engine.update([item.id]) { $0.attributes["comment"] = Array("\(number)".utf8) }
    }
    let versions = try engine.versions(of: item.identity)
    #expect(versions.count == 1 && versions[0].item.attributes["comment"] == nil)
    #expect(versions[0].changes == .attributes)
    // Both states have one secret.
    #expect(try fixture.number("SELECT count(*) FROM secret") == 1)
    #expect(try values(item.identity) == ["one"])
    // Names and times alone are none.
    _ = try engine.update([item.id]) { $0.modified = Timestamp(seconds: 1) }
    #expect(try engine.versions(of: item.identity).count == 1)
    try expectSound(engine)
  }

  @Test func restoringTogglesBetweenTwoStates() throws {
    let item = try engine.add(KeychainSamples.generic("a"), "one")
    _ = try engine.update([item.id]) { $0.attributes["comment"] = Array("first".utf8) }
    try set(item.id, "two")
    let version = try #require(try engine.versions(of: item.identity).last)
    let restored = try engine.restore(version.item.id)
    #expect(restored.id == item.id && restored.attributes["comment"] == Array("first".utf8))
    #expect(try engine.bytes(of: item.id) == Array("one".utf8))
    let undone = try #require(try engine.versions(of: item.identity).last)
    #expect(undone.number > version.number)
    _ = try engine.restore(undone.item.id)
    #expect(try engine.bytes(of: item.id) == Array("two".utf8))
    try expectSound(engine)
  }

  @Test func aRemovedItemIsKeptAndComesBack() throws {
    let item = try engine.add(KeychainSamples.generic("a"), "one")
    try set(item.id, "two")
    try engine.remove([item.id])
    #expect(try engine.items().isEmpty)
    #expect(failure { _ = try engine.secret(of: item.id) } == .notFound)
    #expect(failure { try set(item.id, "no") } == .notFound)
    let versions = try engine.versions(of: item.identity)
    #expect(versions.map(\.changes) == [.value, .removal])
    #expect(try values(item.identity) == ["one", "two"])
    #expect(try engine.identitiesWithVersions() == [item.identity])
    // Also for other processes.
    let other = try fixture.openKeepingVersions()
    #expect(try other.items().isEmpty && other.versions(of: item.identity) == versions)
    let back = try engine.restore(versions[1].item.id)
    #expect(back.id == item.id && back.identity == item.identity && back.created == item.created)
    #expect(try engine.bytes(of: item.id) == Array("two".utf8))
    #expect(try values(item.identity) == ["one"])
    guard case .items(let news) = try other.changes() else {
      guard case .everything(let items) = try other.changes() else { return }
      #expect(items.map(\.id) == [item.id])
      return
    }
    #expect(news.map(\.id) == [item.id])
    try expectSound(engine)
  }

  @Test func anEarlierVersionOfARemovedItemComesBack() throws {
    let item = try engine.add(KeychainSamples.generic("a"), "one")
    try set(item.id, "two")
    try engine.remove([item.id])
    _ = try engine.restore(try engine.versions(of: item.identity)[0].item.id)
    #expect(try engine.bytes(of: item.id) == Array("one".utf8))
    #expect(try values(item.identity) == ["one", "two"])
    try expectSound(engine)
  }

  @Test func itemsRemovedAgainAndAgainHaveOneHistory() throws {
    let identity = KeychainSamples.generic("a").identity
    for number in 0..<13 {
      let item = try engine.add(KeychainSamples.generic("a"), "\(number)")
      try engine.remove([item.id])
    }
    #expect(try values(identity) == (3..<13).map(String.init))
    #expect(try fixture.number("SELECT count(*) FROM item") == 10)
    let present = try engine.add(KeychainSamples.generic("a"), "new")
    let old = try engine.versions(of: identity)[4]
    let restored = try engine.restore(old.item.id)
    #expect(restored.id == present.id)
    #expect(try engine.bytes(of: present.id) == Array("7".utf8))
    #expect(try values(identity).last == "new")
    try expectSound(engine)
    #expect(try engine.purge(identity) == 11)
    #expect(try engine.versions(of: identity).isEmpty)
    #expect(try engine.bytes(of: present.id) == Array("7".utf8))
    try expectSound(engine)
  }

  @Test func versionsFollowAStricterProtection() throws {
    var item = KeychainSamples.generic("a")
    item.accessibility = .afterFirstUnlock
    let id = try engine.add(item, "one").id
    try set(id, "two")
    _ = try engine.update([id]) { $0.accessibility = .whenUnlockedThisDeviceOnly }
    let versions = try engine.versions(of: item.identity)
    #expect(versions.map(\.item.accessibility) == [.whenUnlockedThisDeviceOnly, .whenUnlockedThisDeviceOnly])
    #expect(try values(item.identity) == ["one", "two"])
    // No secret is left under the key of the weaker class.
    #expect(
      try fixture.number("SELECT count(*) FROM secret JOIN class_key ON class_key = id WHERE class = 2") == 0)
    // A weaker one does not weaken them, nor does one that is restored.
    _ = try engine.update([id]) { $0.accessibility = .afterFirstUnlock }
    let strict = try #require(try engine.versions(of: item.identity).last)
    #expect(strict.item.accessibility == .whenUnlockedThisDeviceOnly)
    #expect(try engine.restore(strict.item.id).accessibility == .whenUnlockedThisDeviceOnly)
    try expectSound(engine)
  }

  @Test func versionsFollowThePassword() throws {
    let item = try engine.add(KeychainSamples.generic("a"), "one")
    let (first, second) = (try password("first"), try password("second"))
    let sealed = try engine.using(first)
    _ = try sealed.update([item.id]) { $0.access = [.applicationPassword] }
    let version = try #require(try engine.versions(of: item.identity).first)
    #expect(version.item.access.needsPassword)
    #expect(failure { _ = try engine.secret(of: version.item.id) }?.kind == "accessDenied")
    #expect(try sealed.bytes(of: version.item.id) == Array("one".utf8))
    try engine.changePassword(of: item.id, from: first, to: second)
    #expect(failure { _ = try sealed.secret(of: version.item.id) } == .rejected)
    let resealed = try engine.using(second)
    #expect(try resealed.bytes(of: version.item.id) == Array("one".utf8))
    // Without the password, what it was opens with it only.
    _ = try resealed.update([item.id]) { $0.access = [] }
    #expect(try engine.bytes(of: item.id) == Array("one".utf8))
    #expect(try resealed.bytes(of: version.item.id) == Array("one".utf8))
    let history = try #require(resealed.history)
    #expect(try history.restore(version.item.id).access.needsPassword)
    #expect(failure { _ = try engine.secret(of: item.id) }?.kind == "accessDenied")
    try expectSound(engine)
  }

  @Test func versionsOutlastAChangeOfThePassphrase() throws {
    let item = try engine.add(KeychainSamples.generic("a"), "one")
    _ = try engine.update([item.id]) { $0.attributes["comment"] = [1] }
    try set(item.id, "two")
    let removed = try engine.add(KeychainSamples.generic("b"), "gone")
    try engine.remove([removed.id])
    let summary = try engine.withSession { session throws(StoreError) in session.keys.header.store }
    #expect(!summary.isEmpty)
    try engine.change(
      to: .passphraseAndKeyFile, KeychainSamples.secret("p"), present: KeychainSamples.secret(""),
      cost: .least)
    #expect(try values(item.identity) == ["one", "one"])
    #expect(try values(removed.identity) == ["gone"])
    try engine.lock()
    #expect(failure { _ = try values(item.identity) } == .locked)
    #expect(try engine.versions(of: item.identity).count == 2)
    try engine.unlock(KeychainSamples.secret("p"))
    _ = try engine.restore(try #require(try engine.versions(of: removed.identity).last).item.id)
    #expect(try engine.bytes(of: removed.id) == Array("gone".utf8))
    let check = try engine.checkSecrets()
    #expect(check.damaged.isEmpty && check.withoutItem == 0)
  }

  /// Of values, attributes and sealed bytes.
  @Test(arguments: [1, 40, 400]) func aPurgeLeavesNoResidue(_ others: Int) throws {
    try engine.fill(others, KeychainSamples.secret("other"))
    let item = try engine.add(KeychainSamples.generic("a"), "one")
    for number in 0..<4 { try set(item.id, String(repeating: "\(number)", count: 700 * number + 10)) }
    let removed = try engine.add(KeychainSamples.generic("b"), "gone")
    try engine.remove([removed.id])
    let seals = try keptSeals()
    #expect(seals.count >= 15, "\(seals.count)")
    #expect(try engine.purge(item.identity) == 4 && engine.purge(removed.identity) == 1)
    try expectNoResidue(seals)
    #expect(try fixture.number("SELECT count(*) FROM version") == 0)
    #expect(try fixture.number("SELECT count(*) FROM secret") == others + 1)
    try expectSound(engine)
  }

  @Test func historyOfAnItemIsSwitchedOffWithoutResidue() throws {
    let item = try engine.add(KeychainSamples.generic("a"), "one")
    try set(item.id, "two")
    let seals = try keptSeals()
    _ = try engine.update([item.id]) { $0.attributes[Item.historyAttribute] = Array("0".utf8) }
    try expectNoResidue(seals)
    try set(item.id, "three")
    #expect(try engine.versions(of: item.identity).isEmpty)
    try engine.remove([item.id])
    #expect(try engine.versions(of: item.identity).isEmpty)
    #expect(try fixture.number("SELECT count(*) FROM item") == 0)
    try expectSound(engine)
  }

  @Test func outdatedVersionsAreGone() throws {
    let item = try engine.add(KeychainSamples.generic("a"), "one")
    try set(item.id, "two")
    let removed = try engine.add(KeychainSamples.generic("b"), "gone")
    try engine.remove([removed.id])
    engine.historySettings.retention = HistoryRetention(versions: 10, days: 0)
    #expect(try engine.prune() >= 0)
    try makeOlder(days: 31)
    engine.historySettings.retention = .standard
    #expect(try engine.versions(of: item.identity).isEmpty)
    #expect(try engine.prune() == 2)
    #expect(try fixture.number("SELECT count(*) FROM item") == 1)
    #expect(try fixture.number("SELECT count(*) FROM version") == 0)
    try expectSound(engine)
  }

  @Test func switchedOffNothingStays() throws {
    let item = try engine.add(KeychainSamples.generic("a"), "one")
    try set(item.id, "two")
    let removed = try engine.add(KeychainSamples.generic("b"), "gone")
    try engine.remove([removed.id])
    let seals = try keptSeals()
    engine.historySettings.retention = HistoryRetention.none
    #expect(try engine.prune() == 2)
    try expectNoResidue(seals)
    #expect(try fixture.number("SELECT count(*) FROM version") == 0)
    try expectSound(engine)
  }

  /// A value in the vault comes before that of the suite, and holds for the next change.
  @Test func theSettingsSayHowMuchIsKept() throws {
    let item = try engine.add(KeychainSamples.generic("a"), "0")
    let permit = Permit(item: item.id, for: .readWrite)
    let store = KeychainStore(engine: engine) { sealed in
      Configuration(sealed: sealed, suite: [.history: .integer(5), .historyAge: .integer(7)]).retention
    }
    #expect(store.presentRetention() == HistoryRetention(versions: 5, days: 7))
    // Less than the default takes a person's consent, and so does less than what is there.
    #expect(failure { try store.configure(.history, to: .integer(2), nil) } != nil)
    let consent = Permit(item: ConfigurationKey.history.permitID, for: .change)
    try store.configure(.history, to: .integer(2), consent)
    #expect(engine.retention == HistoryRetention(versions: 2, days: 7))
    for number in 1...4 {
      try store.rewrite(item.id, readingSecret: false, permit) { _, secret throws(StoreError) in
        secret = try KeychainSamples.secretOrFail("\(number)")
      }
    }
    #expect(try values(item.identity) == ["2", "3"])
    #expect(failure { try store.configure(.history, to: .integer(1), nil) } != nil)
    try store.configure(.history, to: .integer(0), consent)
    #expect(engine.retention == HistoryRetention(versions: 0, days: 7))
    try store.configure(.history, to: .integer(20), nil)
    #expect(engine.retention == HistoryRetention(versions: 20, days: 7))
    #expect(failure { try store.configure(.history, to: nil, nil) } != nil)
  }

  /// Off is the default of auto-lock. In the vault it comes before what the suite says, so it takes a person's consent.
  @Test func autoLockIsTurnedOffByAPersonOnly() throws {
    let store = KeychainStore(engine: engine)
    #expect(failure { try store.configure(.autoLock, to: .integer(0), nil) } != nil)
    try store.configure(.autoLock, to: .integer(600), nil)
    #expect(failure { try store.configure(.autoLock, to: .integer(0), nil) } != nil)
    #expect(failure { try store.configure(.autoLock, to: nil, nil) } != nil)
    let consent = Permit(item: ConfigurationKey.autoLock.permitID, for: .change)
    try store.configure(.autoLock, to: .integer(0), consent)
    #expect(try store.sealedConfiguration() == [.autoLock: .integer(0)])
    // It is there already, and the default protects as much.
    try store.configure(.autoLock, to: .integer(0), nil)
    try store.configure(.autoLock, to: nil, nil)
  }

  @Test func aProcessWithoutRetentionKeepsWhatIsThere() throws {
    let item = try engine.add(KeychainSamples.generic("a"), "one")
    try set(item.id, "two")
    let other = try fixture.open()
    _ = try other.rewrite(item.id, readingSecret: false) { _, secret throws(StoreError) in
      secret = try KeychainSamples.secretOrFail("three")
    }
    #expect(try values(item.identity) == ["one"])
    try expectSound(engine)
    try other.remove([item.id])
    #expect(try engine.versions(of: item.identity).isEmpty)
    try expectSound(engine)
  }

  @Test func aVersionThatIsMissingOrSwappedIsFound() throws {
    let item = try engine.add(KeychainSamples.generic("a"), "one")
    let other = try engine.add(KeychainSamples.generic("b"), "x")
    for id in [item.id, other.id] { for text in ["2", "3"] { try set(id, text) } }
    let uuid = try #require(ItemKey(item.id)).bytes
    try fixture.edit(
      "UPDATE version SET sealed = (SELECT sealed FROM version v WHERE v.uuid = version.uuid AND v.revision != version.revision)"
        + " WHERE uuid = x'\(uuid.map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined())'")
    let again = try fixture.openKeepingVersions()
    #expect(failure { _ = try again.versions(of: item.identity) }?.kind == "damaged")
    #expect(try !again.checkSecrets().damaged.isEmpty)
    #expect(try again.versions(of: other.identity).count == 2)
    // It can be changed all the same.
    _ = try again.rewrite(item.id, readingSecret: false) { _, secret throws(StoreError) in
      secret = try KeychainSamples.secretOrFail("4")
    }
    #expect(try again.bytes(of: item.id) == Array("4".utf8))
    #expect(try again.purge(item.identity) == 3)
    try expectSound(again)
  }

  /// An item as it was removed is proven like every other one.
  @Test func aRemovedItemThatAnotherProgramDeletesIsMissed() throws {
    let item = try engine.add(KeychainSamples.generic("a"), "one")
    try engine.remove([item.id])
    try fixture.edit("DELETE FROM item")
    guard case .distrusted = try fixture.openKeepingVersions().trust else {
      Issue.record("trusted")
      return
    }
  }

  /// Codes that were given out stay so, whichever version is restored, also after a removal.
  @Test func aCounterDoesNotGoBackWithAVersion() throws {
    let uri = { (issuer: String, counter: Int) in
      "otpauth://hotp/a?secret=GEZDGNBVGY3TQOJQ&counter=\(counter)&issuer=\(issuer)"
    }
    var item = KeychainSamples.generic("a")
    item.otpauth = FurtherSecret(modified: KeychainSamples.time)
    let id = try engine.add(
      item, secret: KeychainSamples.secret("one"), otpauth: KeychainSamples.secret(uri("x", 8))
    ).id
    try set(id, "two")
    let change = { (counter: Int) in
      _ = try engine.rewriteOtpauth(of: id, readingSecret: true) { further, secret throws(StoreError) in
        secret = try KeychainSamples.secretOrFail(uri("x", counter))
        further = FurtherSecret(modified: .now)
      }
    }
    try change(9)
    try change(12)
    let version = try #require(try engine.versions(of: item.identity).first)
    let restored = try engine.restore(version.item.id)
    let text = { String(decoding: KeychainSamples.bytes(try engine.otpauth(of: id)), as: UTF8.self) }
    #expect(try engine.bytes(of: id) == Array("one".utf8) && text() == uri("x", 12))
    #expect(restored.otpauth?.size == uri("x", 12).utf8.count)
    try engine.remove([id])
    _ = try engine.restore(version.item.id)
    #expect(try text() == uri("x", 12))
    // Of another key or issuer it is another URI, which comes back as it was.
    _ = try engine.rewriteOtpauth(of: id, readingSecret: false) { further, secret throws(StoreError) in
      secret = try KeychainSamples.secretOrFail(uri("y", 99))
      further = FurtherSecret(modified: .now)
    }
    let last = try #require(try engine.versions(of: item.identity).last)
    _ = try engine.restore(last.item.id)
    #expect(try text() == uri("x", 12))
    try expectSound(engine)
  }

  @Test func otpauthURIsBelongToVersions() throws {
    var item = KeychainSamples.generic("a")
    item.otpauth = FurtherSecret(modified: KeychainSamples.time)
    let uri = "otpauth://totp/a?secret=GEZDGNBVGY3TQOJQ"
    let id = try engine.add(item, secret: KeychainSamples.secret("one"), otpauth: KeychainSamples.secret(uri))
      .id
    #expect(try engine.versions(of: item.identity).isEmpty)
    _ = try engine.rewriteOtpauth(of: id, readingSecret: false) { further, _ in further = nil }
    let version = try #require(try engine.versions(of: item.identity).last)
    #expect(version.changes == .otpauth)
    let secret = try engine.otpauth(of: version.item.id)
    #expect(secret.count == uri.utf8.count)
    #expect(try engine.restore(version.item.id).otpauth?.size == uri.utf8.count)
    #expect(try engine.otpauth(of: id).count == uri.utf8.count)
    try expectSound(engine)
  }
}

extension VaultHistoryTests {
  private func password(_ text: String) throws -> ItemPassword {
    ItemPassword(try KeychainSamples.secret(text))
  }

  /// The sealed bytes of versions and of their secrets and value keys, as they are now.
  private func keptSeals() throws -> [[UInt8]] {
    let queue = try DatabaseQueue(path: fixture.database)
    return try queue.read { database in
      let kept = try Row.fetchAll(database, sql: "SELECT uuid, revision FROM version")
      #expect(!kept.isEmpty)
      let secrets = "FROM secret WHERE uuid IN (SELECT uuid FROM version)"
      return try [
        "sealed FROM version", "sealed \(secrets)", "wrapped \(secrets)",
      ].flatMap { try Data.fetchAll(database, sql: "SELECT " + $0).map(Array.init) }
    }
  }

  private func expectNoResidue(_ kept: [[UInt8]], sourceLocation: SourceLocation = #_sourceLocation) throws {
    let queue = try DatabaseQueue(path: fixture.database)
    let present = try queue.read { database in
      try ["sealed", "wrapped"].flatMap {
        try Data.fetchAll(database, sql: "SELECT \($0) FROM secret").map(Array.init)
      }
    }
    try queue.close()
    let seals = kept.filter { !present.contains($0) }
    #expect(seals.count >= 3, sourceLocation: sourceLocation)
    for name in names(in: fixture.directory) {
      let bytes = Data(contents(of: fixture.directory + "/" + name))
      for seal in seals {
        // The middle of a seal, since an overflow page may divide it.
        for start in stride(from: 0, to: seal.count - 16, by: 64) {
          let part = Data(seal[start..<(start + 16)])
          #expect(bytes.range(of: part) == nil, "\(name)", sourceLocation: sourceLocation)
        }
      }
    }
  }

  /// As if all versions had been replaced so many days earlier.
  private func makeOlder(days: Int64) throws {
    try engine.withSession { session throws(StoreError) in
      try session.connection.write { database in
        let table = session.versions(database)
        for key in try session.items(database).allKeys() {
          guard let record = try session.items(database).fetch(key)?.record else { continue }
          for revision in record.versions {
            var version = try table.fetch(key, revision)
            version.replacement?.time = Timestamp(seconds: Timestamp.now.seconds - days * 86_400)
            try table.put(version, key, revision)
          }
        }
      }
    }
  }
}

extension KeychainSamples {
  /// As `secret`, for a body that throws errors of stores.
  static func secretOrFail(_ text: String) throws(StoreError) -> SecretBytes {
    do { return try secret(text) } catch { throw .outOfMemory }
  }
}
