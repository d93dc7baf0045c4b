import Model
import SecretMemory
import Store
import StoreConformance
import Synchronization
import Testing

@testable import Vault
@testable import VaultRecords

/// Versions open under what protects them and what protects the item.
@Suite(.timeLimit(.minutes(1))) struct VaultHistoryAccessTests {
  private let fixture: VaultFixture
  private let store: KeychainStore
  private let person = Person()

  private final class Person: Authenticator {
    let questions = Mutex<[Question]>([])

    func ask(_ question: Question, _ withdrawal: Withdrawal) -> Answer {
      questions.withLock { $0.append(question) }
      return .approved(nil)
    }

    var demands: [Demand?] { questions.withLock { $0.map(\.demand) } }
  }

  init() throws {
    fixture = try VaultFixture()
    var options = AccessController.Options()
    options.reuse = 0
    store = KeychainStore(
      engine: try fixture.openKeepingVersions(), controller: AccessController(person, options))
  }

  private func add(_ access: AccessFlags, _ name: ExactString = "a") throws -> Item {
    var item = KeychainSamples.generic(name)
    item.access = access
    return try store.add(item, secret: KeychainSamples.secret("one"))
  }

  private func set(_ item: Item, _ text: String) throws {
    let permit = try store.permission(for: item.id, to: .write, path: "a", by: .current).fetch()
    try store.rewrite(item.id, readingSecret: false, permit) { _, secret throws(StoreError) in
      secret = try KeychainSamples.secretOrFail(text)
    }
    person.questions.withLock { $0 = [] }
  }

  private func change(_ item: Item, _ body: (inout Item) -> Void) throws {
    var changed = try #require(try store.item(item.id))
    body(&changed)
    let permit = try store.permission(for: item, changingTo: changed, path: "a", by: .current).fetch()
    try store.update([item.id], permit) { item in body(&item) }
    person.questions.withLock { $0 = [] }
  }

  private func read(_ version: ItemVersion) throws -> String {
    let permit = try store.permission(for: version.item.id, to: .read, path: "a", by: .current).fetch()
    let secret = try store.secret(of: version.item.id, permit)
    return unsafe secret.withUnsafeBytes { unsafe String(decoding: $0, as: UTF8.self) }
  }

  @Test func aVersionWithoutFlagsIsAskedForOnceTheItemHasSome() throws {
    let item = try add([])
    try set(item, "two")
    let version = try #require(try store.versions(of: item.identity).last)
    #expect(try read(version) == "one" && person.demands.isEmpty)
    try change(item) { $0.access = [.devicePasscode] }
    #expect(throws: StoreError.self) { _ = try store.secret(of: version.item.id) }
    #expect(try read(version) == "one" && person.demands == [.passcode])
  }

  @Test func aVersionWithFlagsIsAskedForWhenTheItemHasNone() throws {
    let item = try add([.devicePasscode])
    try change(item) { $0.access = [] }
    let version = try #require(try store.versions(of: item.identity).last)
    #expect(throws: StoreError.self) { _ = try store.secret(of: version.item.id) }
    #expect(try read(version) == "one" && person.demands == [.passcode])
  }

  @Test func bothFlagsAreDemanded() throws {
    let item = try add([.devicePasscode])
    try set(item, "two")
    try change(item) { $0.access = [.biometryAny] }
    let version = try #require(try store.versions(of: item.identity).first)
    #expect(try read(version) == "one" && person.demands == [.all([.passcode, .biometry])])
  }

  @Test func rulesOfBothHold() throws {
    let item = try add([])
    try set(item, "two")
    try change(item) { $0.programs = "deny *" }
    let version = try #require(try store.versions(of: item.identity).first)
    #expect(throws: StoreError.self) { try read(version) }
    #expect(throws: StoreError.self) {
      _ = try store.permission(toRestore: version, path: "a", by: .current)
    }
    try change(item) { $0.programs = nil }
    #expect(try read(version) == "one")
    let denied = try #require(try store.versions(of: item.identity).last)
    #expect(throws: StoreError.self) { try read(denied) }
  }

  /// The rules of an item that has taken the name of a removed one hold for that, too.
  @Test func aNewItemProtectsWhatHadItsName() throws {
    let item = try add([])
    try store.remove([item.id])
    let version = try #require(try store.versions(of: item.identity).last)
    #expect(try read(version) == "one" && person.demands.isEmpty)
    let present = try add([.devicePasscode])
    #expect(try read(version) == "one" && person.demands == [.passcode])
    person.questions.withLock { $0 = [] }
    let permission = try #require(try store.permission(toRestore: version, path: "a", by: .current))
    #expect(throws: StoreError.self) { try store.restore(version) }
    let restored = try store.restore(version, permission.fetch())
    #expect(restored.id == present.id && restored.access == [.devicePasscode])
    #expect(person.demands == [.passcode])
  }

  /// A program could otherwise remove the item first, or put one without protection in its place.
  @Test func aRemovedItemProtectsItsVersions() throws {
    let item = try add([])
    try set(item, "two")
    try change(item) { $0.access = [.devicePasscode] }
    let first = try #require(try store.versions(of: item.identity).first)
    #expect(first.item.access.isEmpty)
    try store.remove([item.id])
    #expect(throws: StoreError.self) { _ = try store.secret(of: first.item.id) }
    #expect(throws: StoreError.self) { try store.restore(first) }
    #expect(try read(first) == "one" && person.demands == [.passcode])
    _ = try add([])
    #expect(throws: StoreError.self) { _ = try store.secret(of: first.item.id) }
    #expect(throws: StoreError.self) { try store.restore(first) }
  }

  @Test func whatWasRemovedComesBackWithoutAQuestion() throws {
    let item = try add([.devicePasscode])
    try store.remove([item.id])
    let version = try #require(try store.versions(of: item.identity).last)
    #expect(try store.permission(toRestore: version, path: "a", by: .current) == nil)
    #expect(try store.restore(version).access == [.devicePasscode])
    #expect(person.demands.isEmpty)
    #expect(try store.item(item.id) != nil)
  }

  @Test func theStricterClassDecidesWhileLocked() throws {
    let item = try add([])
    try change(item) { $0.accessibility = .afterFirstUnlock }
    let version = try #require(try store.versions(of: item.identity).last)
    let engine = try #require(store.engine as? VaultEngine)
    try engine.change(
      to: .passphraseAndKeyFile, KeychainSamples.secret("p"), present: KeychainSamples.secret(""),
      cost: .least)
    try store.lock()
    #expect(throws: StoreError.locked) { try read(version) }
    #expect(try store.versions(of: item.identity).count == 1)
  }

  @Test func whatIsRestoredIsAChangeThatIsPublished() async throws {
    let item = try add([])
    try set(item, "two")
    var changes = store.feed.watch().makeAsyncIterator()
    try store.restore(try #require(try store.versions(of: item.identity).last))
    #expect(await changes.next() == Change(.modified, .item(item.id, item.identity), origin: .local))
    try store.remove([item.id])
    #expect(await changes.next()?.kind == .deleted)
    try store.restore(try #require(try store.versions(of: item.identity).last))
    #expect(await changes.next()?.kind == .created)
  }
}

/// `Item.restoring`: attributes as they were, protection as strict as both.
struct RestoringTests {
  private func item(_ access: AccessFlags, _ programs: ExactString? = nil) -> Item {
    var item = KeychainSamples.generic("a")
    (item.access, item.programs) = (access, programs)
    return item
  }

  @Test func protectionIsNeverWeaker() throws {
    let cases: [(then: AccessFlags, now: AccessFlags, result: AccessFlags?)] = [
      ([], [], []), ([], [.userPresence], [.userPresence]), ([.userPresence], [], [.userPresence]),
      ([.userPresence], [.devicePasscode], [.userPresence, .devicePasscode]),
      ([.biometryAny, .or, .devicePasscode], [], [.biometryAny, .or, .devicePasscode]),
      ([.biometryAny, .or, .devicePasscode], [.userPresence], nil),
      ([.applicationPassword], [.userPresence], [.userPresence, .applicationPassword]),
      (
        [.biometryAny, .or, .devicePasscode], [.applicationPassword],
        [.biometryAny, .or, .devicePasscode, .applicationPassword]
      ),
    ]
    for (then, now, result) in cases {
      #expect((try? item(now).restoring(item(then)))?.access == result, "\(then) \(now)")
    }
    #expect(try item([], "deny *").restoring(item([], "ask *")).programs == "deny *")
    #expect(try item([]).restoring(item([], "ask *")).programs == "ask *")
  }

  @Test func classesAreJoined() {
    let all = Accessibility.allCases
    for first in all {
      for second in all {
        let joined = first.stricter(second)
        #expect(joined == second.stricter(first))
        #expect(joined.stricter(first) == joined && joined.stricter(second) == joined)
        #expect(!joined.survivesLock || first.survivesLock && second.survivesLock)
      }
    }
    #expect(
      Accessibility.whenUnlocked.stricter(.afterFirstUnlockThisDeviceOnly) == .whenUnlockedThisDeviceOnly)
  }

  @Test func attributesAreRestoredButNotWhatIsKept() throws {
    var (then, now) = (item([]), item([]))
    then.attributes = ["comment": [1], Item.historyAttribute: [0x30]]
    now.attributes = ["comment": [2], "other": [3]]
    let restored = try now.restoring(then)
    #expect(restored.attributes == ["comment": [1]])
  }
}
