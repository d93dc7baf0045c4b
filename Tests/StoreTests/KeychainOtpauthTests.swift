import Model
import SecretMemory
import StoreConformance
import Synchronization
import Testing

@testable import Store

/// The second secret of an item: `otpauth:`.
@Suite(.timeLimit(.minutes(1))) struct KeychainOtpauthTests {
  private static let uri = "otpauth://totp/a:me?secret=JBSWY3DPEHPK3PXP"
  private let engine = MemoryKeychain()

  private final class Person: Authenticator {
    let questions = Mutex<[Question]>([])

    func ask(_ question: Question, _ withdrawal: Withdrawal) -> Answer {
      questions.withLock { $0.append(question) }
      return .approved(nil)
    }
  }

  private final class Record: AccessRecord {
    let lines = Mutex<[String]>([])

    func takes(guarded: Bool) -> Bool { true }

    func note(_ event: AccessEvent) { lines.withLock { $0.append(event.line) } }
  }

  private func guarded() throws -> Item {
    var item = KeychainSamples.generic("a")
    item.access = [.devicePasscode]
    return try engine.setOtpauth(engine.add(item, "secret").id, Self.uri)
  }

  @Test func changesAreNewsOfTheirOwn() async throws {
    let store = KeychainStore(engine: engine)
    var log = ChangeLog(store.feed)
    let item = try store.add(KeychainSamples.generic("a"), secret: KeychainSamples.secret("secret"))
    for uri in [Self.uri, Self.uri + "&digits=8"] {
      let new = try KeychainSamples.secret(uri)
      try store.rewriteOtpauth(of: item.id, readingSecret: false) { further, secret throws(StoreError) in
        further = FurtherSecret(modified: KeychainSamples.time)
        do { secret = try SecretBytes(copying: new) } catch { throw .outOfMemory }
      }
    }
    try store.removeOtpauth(of: item.id)
    #expect(
      await log.next() == [
        Change(.created, .item(item.id, item.identity), origin: .local),
        Change(.created, .otpauth(item.id, item.identity), origin: .local),
        Change(.modified, .otpauth(item.id, item.identity), origin: .local),
        Change(.deleted, .otpauth(item.id, item.identity), origin: .local),
      ])
    #expect(throws: StoreError.notFound) { try store.removeOtpauth(of: item.id) }
  }

  @Test func changesElsewhereAreNews() async throws {
    let store = KeychainStore(engine: engine)
    let elsewhere = MemoryKeychain(sharing: engine)
    try store.load()
    var log = ChangeLog(store.feed)
    let item = try elsewhere.add(KeychainSamples.generic("a"), "secret")
    try elsewhere.setOtpauth(item.id, Self.uri)
    try store.refresh()
    try elsewhere.remove([item.id])
    try store.refresh()
    let kinds: [Change.Kind] = [.created, .deleted]
    #expect(
      await log.next() == [
        Change(kinds[0], .item(item.id, item.identity), origin: .external),
        Change(kinds[0], .otpauth(item.id, item.identity), origin: .external),
        Change(kinds[1], .otpauth(item.id, item.identity), origin: .external),
        Change(kinds[1], .item(item.id, item.identity), origin: .external),
      ])
  }

  @Test func whatIsNoURIIsRefused() throws {
    let store = KeychainStore(engine: engine)
    let item = try store.add(KeychainSamples.generic("a"), secret: KeychainSamples.secret("secret"))
    #expect(throws: StoreError.self) {
      try store.rewriteOtpauth(of: item.id, readingSecret: false) { further, _ in
        further = FurtherSecret(modified: KeychainSamples.time)
      }
    }
    var new = KeychainSamples.generic("b")
    new.otpauth = FurtherSecret(modified: KeychainSamples.time)
    #expect(throws: StoreError.self) {
      try store.add(new, secret: KeychainSamples.secret("s"), otpauth: KeychainSamples.secret("JBSWY3DP"))
    }
    #expect(throws: StoreError.self) {
      let changes: [ItemChange] = [.setOtpauth(item.identity, modified: KeychainSamples.time)]
      try store.apply(changes) { _ throws(StoreError) in
        do { return try KeychainSamples.secret("JBSWY3DP") } catch { throw .outOfMemory }
      }
    }
    #expect(try engine.items() == [item])
  }

  /// An answer covers the secrets that the question named.
  @Test func answerAboutOneSecretIsNoneAboutTheOther() throws {
    let person = Person()
    let record = Record()
    let store = KeychainStore(
      engine: engine, controller: AccessController(person, AccessController.Options(), record: record))
    let item = try guarded()
    func permit(_ secrets: ItemSecrets) throws -> Permit {
      try store.permission(for: item, to: .read, secrets, path: "S/A", by: .current).fetch()
    }
    let value = try permit(.value)
    #expect(try store.secret(of: item, value).count == 6)
    #expect(throws: StoreError.self) { _ = try store.otpauth(of: item, value) }
    #expect(throws: StoreError.self) { _ = try store.otpauth(of: item) }
    let otpauth = try permit(.otpauth)
    #expect(try store.otpauth(of: item, otpauth).count == Self.uri.utf8.count)
    #expect(throws: StoreError.self) { _ = try store.secret(of: item, otpauth) }
    #expect(throws: StoreError.self) {
      try store.rewriteOtpauth(of: item.id, readingSecret: true, value) { _, _ in }
    }
    // Each was asked about, and holds for some seconds.
    _ = try permit(.otpauth)
    let both = try permit([.value, .otpauth])
    #expect(try store.secret(of: item, both).count == 6)
    #expect(try store.otpauth(of: item, both).count == Self.uri.utf8.count)
    let asked = person.questions.withLock { $0.map(\.items) }
    #expect(asked == [["S/A"], ["S/A/otpauth"], ["S/A", "S/A/otpauth"]])
    let noted = record.lines.withLock { $0 }
    #expect(noted.count == 4 && !noted[0].contains("secret") && noted[1].contains(#""secret":"otpauth""#))
    #expect(noted[2].contains("reused") && noted[3].contains(#""secret":"value,otpauth""#))
  }
}
