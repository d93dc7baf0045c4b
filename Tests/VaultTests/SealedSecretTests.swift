import GRDB
import Model
import Store
import StoreConformance
import Testing

@testable import Vault
@testable import VaultDatabase
@testable import VaultRecords

/// A secret that was read once is read again from memory only until the next commit of any process.
@Suite(.timeLimit(.minutes(1))) struct SealedSecretTests {
  private let fixture: VaultFixture
  private struct Refusal: Error {}

  init() throws {
    fixture = try VaultFixture()
    try fixture.makeVault(["a", "b"])
  }

  @Test func markChangesWithEachCommitOfAnybodyAndWithNothingElse() throws {
    let (own, other) = (try Connection(fixture.database), try Connection(fixture.database))
    _ = try own.read { try Connection.dataVersion($0) }
    let mark = try #require(own.commitMark())
    _ = try other.read { try Connection.dataVersion($0) }
    #expect(own.commitMark() == mark)
    _ = try? other.write { database in
      try database.execute(sql: "CREATE TABLE a (b)")
      throw Refusal()
    }
    #expect(own.commitMark() == mark)
    try other.write { try $0.execute(sql: "CREATE TABLE a (b)") }
    let next = try #require(own.commitMark())
    #expect(next != mark)
    try own.write { try $0.execute(sql: "DROP TABLE a") }
    #expect(own.commitMark() != next)
  }

  @Test func knownSecretIsReadAnewAfterAnotherProcessChangedIt() throws {
    let (own, other) = (try fixture.open(), try fixture.open())
    let ids = try own.items().map(\.id)
    let (a, b) = (ids[0], ids[1])
    let before = try own.bytes(of: a)
    #expect(try own.bytes(of: a) == before)
    _ = try other.rewrite(a, readingSecret: false) { (_, secret) throws(StoreError) in
      do { secret = try KeychainSamples.secret("new") } catch { throw .outOfMemory }
    }
    #expect(try own.bytes(of: a) == Array("new".utf8))
    #expect(try own.bytes(of: a) == Array("new".utf8))
    try other.remove([b])
    #expect(throws: StoreError.notFound) { _ = try own.bytes(of: b) }
    #expect(try own.bytes(of: a) == Array("new".utf8))
  }

  @Test func knownSecretIsLockedWithTheOthers() throws {
    try fixture.open().change(
      to: .passphrase, KeychainSamples.secret("p"), present: KeychainSamples.secret(""), cost: .least)
    let engine = try fixture.open()
    try engine.unlock(KeychainSamples.secret("p"))
    let item = try #require(try engine.items().first).id
    let secret = try engine.bytes(of: item)
    try engine.lock()
    #expect(throws: StoreError.locked) { _ = try engine.bytes(of: item) }
    try engine.unlock(KeychainSamples.secret("p"))
    #expect(try engine.bytes(of: item) == secret)
  }
}
