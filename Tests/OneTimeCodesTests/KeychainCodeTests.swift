import InMemory
import Model
import OneTimeCodes
import SecretMemory
import StoreConformance
import Synchronization
import Testing

@testable import Store

/// Codes of items: under their flags, and those of counters once.
@Suite(.timeLimit(.minutes(1))) struct KeychainCodeTests {
  private static let totp = "otpauth://totp/a?secret=GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ"
  private static let hotp = "otpauth://hotp/a?secret=GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ&counter=0"
  private let engine = MemoryKeychain()

  private final class Person: Authenticator {
    let questions = Mutex<[Question]>([])
    let answer: Answer

    init(_ answer: Answer) {
      self.answer = answer
    }

    func ask(_ question: Question, _ withdrawal: Withdrawal) -> Answer {
      questions.withLock { $0.append(question) }
      return answer
    }
  }

  private func item(_ uri: String, flags: AccessFlags = []) throws -> Item {
    var item = KeychainSamples.generic("a")
    item.access = flags
    return try engine.setOtpauth(engine.add(item, "secret").id, uri)
  }

  private func text(_ code: borrowing OneTimeCode) -> String {
    String(decoding: code.digits.unprotected, as: UTF8.self)
  }

  @Test func counterIsStoredBeforeItsCodeIsGiven() throws {
    let store = KeychainStore(engine: engine)
    let item = try item(Self.hotp)
    #expect(try text(store.oneTimeCode(of: item, nil)) == "755224")
    #expect(try text(store.oneTimeCode(of: item, nil)) == "287082")
    #expect(try engine.otpauth(of: item.id) == KeychainSamples.secret(Self.hotp.dropLast() + "2"))
    #expect(throws: StoreError.self) { _ = try store.oneTimeCode(of: item, nil, counting: false) }
    #expect(try text(store.oneTimeCode(of: item, nil)) == "359152")
  }

  @Test func timeChangesNothingThatIsStored() throws {
    let store = KeychainStore(engine: engine)
    let item = try item(Self.totp)
    let code = try store.oneTimeCode(of: item, nil, counting: false, at: Timestamp(seconds: 59))
    #expect(text(code) == "287082")
    #expect(try engine.items().first == item)
  }

  /// A program that was given the code does not get what it is computed from, nor the secret.
  @Test(arguments: [Answer.Scope.items, .process, .session])
  func answerAboutTheCodeIsNoneAboutTheURI(scope: Answer.Scope) throws {
    let person = Person(.approved(nil, scope: scope))
    let store = KeychainStore(engine: engine, controller: AccessController(person))
    let item = try item(Self.totp, flags: [.devicePasscode])
    try store.load()
    let caller = Caller.current
    let permit = try store.permission(for: item, to: .read, .code, path: "p", by: caller).fetch()
    _ = try store.oneTimeCode(of: item, permit)
    #expect(throws: StoreError.self) { _ = try store.otpauth(of: item, permit) }
    #expect(throws: StoreError.self) { _ = try store.secret(of: item, permit) }
    _ = try store.permission(for: item, to: .read, .otpauth, path: "p", by: caller).fetch()
    _ = try store.permission(for: item, to: .read, .value, path: "p", by: caller).fetch()
    let asked = person.questions.withLock { $0 }
    // An answer for the process is one about all other secrets, too, once it was about one.
    #expect(asked.map(\.items) == [["p/otp"], ["p/otpauth"]] + (scope == .process ? [] : [["p"]]))
    // A rule is for all secrets of an item.
    #expect(asked.first?.offeredRule == nil && asked.last?.offeredRule != nil)
  }

  @Test func itemWithoutURIHasNone() throws {
    let store = KeychainStore(engine: engine)
    let item = try engine.add(KeychainSamples.generic("b"), "secret")
    #expect(throws: StoreError.notFound) { _ = try store.oneTimeCode(of: item, nil) }
  }
}
