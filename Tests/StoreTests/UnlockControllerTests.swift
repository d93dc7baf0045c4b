import Dispatch
import Model
import Platform
import SecretMemory
import StoreConformance
import Synchronization
import Testing

@testable import Store

/// A person who types what a test says, one text for each dialog; nil: they refuse.
private final class TypingPerson: Authenticator {
  enum Act: Sendable {
    case types(String)
    case refuses
    case waits
    case cannotBeAsked
  }

  private let acts: Mutex<[Act]>
  let questions = Mutex<[Question]>([])
  /// Signalled when a dialog is open.
  let opened = DispatchSemaphore(value: 0)
  /// Signalled once for each dialog that is to be answered.
  let answers = DispatchSemaphore(value: 0)
  private let isGated: Bool
  /// How many series of tries there were.
  let series = Mutex(0)

  init(_ acts: [Act], gated: Bool = false) {
    self.acts = Mutex(acts)
    isGated = gated
  }

  func withTries<Value>(_ body: (_ ask: @escaping (Question, Withdrawal) -> Answer) -> Value) -> Value {
    series.withLock { $0 += 1 }
    return body(ask)
  }

  func ask(_ question: Question, _ withdrawal: Withdrawal) -> Answer {
    questions.withLock { $0.append(question) }
    let act = acts.withLock { $0.count > 1 ? $0.removeFirst() : $0[0] }
    withdrawal.whenWithdrawn { [answers] in answers.signal() }
    opened.signal()
    if case .waits = act { answers.wait() } else if isGated { answers.wait() }
    withdrawal.whenWithdrawn(nil)
    switch act {
    case .types(let text): return .approved(password(text))
    case .refuses, .waits: return .refused
    case .cannotBeAsked: return .impossible("there is no terminal")
    }
  }

  var count: Int { questions.withLock { $0.count } }
}

/// nil: there is no locked memory.
private func password(_ text: String) -> ItemPassword? {
  guard let secret = try? KeychainSamples.secret(text) else { return nil }
  return ItemPassword(secret)
}

@Suite(.timeLimit(.minutes(1))) struct UnlockControllerTests {
  private final class Time: Sendable {
    let seconds = Atomic<UInt64>(1000)
  }

  private let time = Time()
  /// How often the passphrase `horse` was given.
  private final class Lock: Sendable {
    let unlocks = Atomic<Int>(0)
  }

  private let lock = Lock()

  private func controller(_ person: TypingPerson) -> UnlockController {
    UnlockController(person, now: { [time] in time.seconds.load(ordering: .relaxed) })
  }

  private func request(
    _ controller: UnlockController, session: Int32 = 1, terminal: String? = nil
  ) -> UnlockRequest {
    var caller = Caller.Identity(process: .init(number: 100 + session, start: 1), user: 1, executable: nil)
    (caller.session, caller.terminal) = (.init(number: session, start: 1), terminal)
    return UnlockRequest(.init(path: "keychain/generic/s/p/value", caller: caller), controller) {
      [lock] (passphrase) throws(StoreError) in
      guard passphrase.withSpan(0..<passphrase.count, { $0.hasSameBytes(as: "horse".utf8.span) }) else {
        throw .rejected
      }
      lock.unlocks.add(1, ordering: .relaxed)
    }
  }

  private func begin(_ request: UnlockRequest) -> Promise<UnlockRequest.Outcome> {
    let outcome = Promise<UnlockRequest.Outcome>()
    request.start { outcome.fulfill($0) }
    return outcome
  }

  private func ask(_ controller: UnlockController, session: Int32 = 1) -> UnlockRequest.Outcome {
    begin(request(controller, session: session)).wait()
  }

  @Test func oneDialogForAllThatWait() {
    let person = TypingPerson([.types("horse")], gated: true)
    let controller = controller(person)
    let first = begin(request(controller))
    person.opened.wait()
    let others = (2...20).map { begin(request(controller, session: $0)) }
    person.answers.signal()
    #expect(first.wait() == .unlocked)
    #expect(others.allSatisfy { $0.wait() == .unlocked })
    #expect(person.count == 1 && lock.unlocks.load(ordering: .relaxed) == 1)
  }

  @Test func wrongPassphrasesAreCountedInTheNextDialog() {
    let person = TypingPerson([.types("cow"), .types("dog"), .types("horse")])
    #expect(ask(controller(person)) == .unlocked)
    #expect(person.questions.withLock { $0.map(\.failures) } == [0, 1, 2])
    #expect(person.series.withLock { $0 } == 1)
  }

  /// A command names the file that is missing, and not only that the keychain is locked.
  @Test func whoWaitsGetsTheErrorThatNoPassphraseMends() {
    let missing = StoreError.accessDenied(reason: "vault.key is missing")
    let caller = Caller.Identity(process: .init(number: 100, start: 1), user: 1, executable: nil)
    let subject = UnlockRequest.Subject(path: "keychain/generic/s/p/value", caller: caller)
    let request = UnlockRequest(subject, controller(TypingPerson([.types("horse")]))) {
      _ throws(StoreError) in
      throw missing
    }
    #expect(throws: missing) { try request.fetch() }
    let wrong = self.request(controller(TypingPerson([.types("cow")])))
    #expect(throws: StoreError.locked) { try wrong.fetch() }
  }

  @Test func threeWrongPassphrasesLeaveItLocked() {
    let person = TypingPerson([.types("cow")])
    #expect(ask(controller(person)) == .stillLocked(reason: "the passphrase was wrong three times"))
    #expect(person.count == 3)
  }

  @Test func aWaiterThatLeavesDoesNotEndTheQuestionOfOthers() {
    let person = TypingPerson([.types("horse")], gated: true)
    let controller = controller(person)
    let (one, other) = (request(controller, session: 1), request(controller, session: 2))
    _ = begin(one)
    person.opened.wait()
    let outcome = begin(other)
    // Both have no terminal: the dialog stays.
    one.withdraw()
    person.answers.signal()
    #expect(outcome.wait() == .unlocked)
    #expect(person.count == 1)
  }

  @Test func aDialogOnATerminalGoesWithTheProgramThere() {
    let person = TypingPerson([.waits, .types("horse")])
    let controller = controller(person)
    let one = request(controller, session: 1, terminal: "/dev/pts/1")
    let other = request(controller, session: 2, terminal: "/dev/pts/2")
    _ = begin(one)
    person.opened.wait()
    let outcome = begin(other)
    one.withdraw()
    #expect(outcome.wait() == .unlocked)
    #expect(person.questions.withLock { $0.map(\.caller.terminal) } == ["/dev/pts/1", "/dev/pts/2"])
  }

  @Test func theLastWaiterEndsTheQuestionAndIsNoRefusal() {
    let person = TypingPerson([.waits, .types("horse")])
    let controller = controller(person)
    let one = request(controller)
    _ = begin(one)
    person.opened.wait()
    one.withdraw()
    // The same session may be asked at once.
    #expect(ask(controller) == .unlocked)
    #expect(person.count == 2)
  }

  @Test func aRefusalIsValidForTheSessionForAMinute() {
    let person = TypingPerson([.refuses, .types("horse")])
    let controller = controller(person)
    #expect(ask(controller) == .stillLocked(reason: "a person refused"))
    time.seconds.add(59, ordering: .relaxed)
    #expect(ask(controller) == .stillLocked(reason: "a person refused"))
    #expect(person.count == 1)
    time.seconds.add(1, ordering: .relaxed)
    #expect(ask(controller) == .unlocked)
  }

  @Test func aRefusalIsNotValidForOtherSessions() {
    let person = TypingPerson([.refuses, .types("horse")])
    let controller = controller(person)
    _ = ask(controller)
    #expect(ask(controller, session: 2) == .unlocked)
  }

  /// A program that begins a session for each attempt.
  @Test func newSessionsDoNotCauseDialogsWithoutEnd() {
    let person = TypingPerson([.refuses])
    let controller = controller(person)
    for session in 1...20 { _ = ask(controller, session: Int32(session)) }
    #expect(person.count == 3)
    time.seconds.add(60, ordering: .relaxed)
    for session in 21...40 { _ = ask(controller, session: Int32(session)) }
    #expect(person.count == 4)
    // Twice as long after the next one.
    time.seconds.add(60, ordering: .relaxed)
    _ = ask(controller, session: 50)
    #expect(person.count == 4)
    controller.didUnlock()
    _ = ask(controller, session: 51)
    #expect(person.count == 5)
  }

  @Test func withoutADialogItIsNoRefusal() {
    let person = TypingPerson([.cannotBeAsked])
    let controller = controller(person)
    for session in 1...20 { _ = ask(controller, session: Int32(session)) }
    #expect(person.count == 20)
    #expect(ask(controller) == .stillLocked(reason: "there is no terminal"))
    #expect(person.count == 20)
    time.seconds.add(UnlockController.quietSecondsWithoutDialog, ordering: .relaxed)
    _ = ask(controller)
    #expect(person.count == 21)
  }

  @Test func aLockedSessionEndsTheQuestionAndAsksNothing() {
    let person = TypingPerson([.waits, .types("horse")])
    let controller = controller(person)
    let outcome = begin(request(controller))
    person.opened.wait()
    controller.pause()
    #expect(outcome.wait() != .unlocked)
    #expect(ask(controller) != .unlocked)
    #expect(person.count == 1)
    controller.resume()
    #expect(ask(controller) == .unlocked)
  }

  /// A passphrase that is typed while the keychain is locked again does not open it.
  @Test func anAnswerAfterALockIsNotUsed() {
    let person = TypingPerson([.types("horse")], gated: true)
    let controller = controller(person)
    let outcome = begin(request(controller))
    person.opened.wait()
    // The dialog is answered by the withdrawal, with the right passphrase.
    controller.didLock()
    #expect(outcome.wait() == .stillLocked(reason: "it was locked while the question was open"))
    #expect(lock.unlocks.load(ordering: .relaxed) == 0)
  }

  @Test func anotherWayToUnlockEndsTheQuestion() {
    let person = TypingPerson([.waits])
    let controller = controller(person)
    let outcome = begin(request(controller))
    person.opened.wait()
    controller.didUnlock()
    #expect(outcome.wait() == .unlocked)
  }

  // MARK: - Requests that wait

  /// With requests that are listed; `listed` is signalled for each.
  private func listing(
    _ person: TypingPerson, _ listed: DispatchSemaphore, timeout: Int = 60
  ) -> UnlockController {
    var options = UnlockController.Options()
    (options.listsRequests, options.timeout) = (true, timeout)
    options.onListed = { _ in listed.signal() }
    return UnlockController(
      person, { [options] in options }, now: { [time] in time.seconds.load(ordering: .relaxed) })
  }

  private let approver = Caller.Identity(process: .init(number: 9, start: 1), user: 1, executable: nil)

  @Test func withoutADialogItWaitsForAnApproval() throws {
    let (person, listed) = (TypingPerson([.cannotBeAsked, .cannotBeAsked, .types("horse")]), semaphore())
    let controller = listing(person, listed)
    let outcomes = ([1, 2] as [Int32]).map { session in
      defer { listed.wait() }
      return begin(request(controller, session: session))
    }
    let requests = controller.listedRequests()
    #expect(requests.map(\.number) == [1, 2] && requests.map(\.purpose) == [.unlock, .unlock])
    #expect(requests[0].reason == "there is no terminal" && requests[0].secondsLeft == 60)
    try controller.approve(2, by: approver, Withdrawal())
    #expect(outcomes.map { $0.wait() } == [.unlocked, .unlocked])
    #expect(controller.listedRequests().isEmpty && lock.unlocks.load(ordering: .relaxed) == 1)
    let question = try #require(person.questions.withLock { $0.last })
    #expect(question.approver?.process?.number == 9 && question.caller.process?.number == 102)
    #expect(question.password == .vault)
  }

  /// The second request of the process is made while it is known that no dialog can be shown.
  @Test func requestsOfOneProcessAreOneEntry() throws {
    let (person, listed) = (TypingPerson([.cannotBeAsked]), semaphore())
    let controller = listing(person, listed)
    let first = begin(request(controller))
    listed.wait()
    let second = begin(request(controller))
    #expect(controller.listedRequests().count == 1 && person.count == 1)
    try controller.deny(1)
    let refused = UnlockRequest.Outcome.stillLocked(reason: "a person refused")
    #expect(first.wait() == refused && second.wait() == refused)
    // As after a refusal in a dialog.
    #expect(ask(controller) == refused && person.count == 1)
  }

  @Test func anApprovalThatUnlocksNothingLeavesTheRequest() throws {
    let (person, listed) = (TypingPerson([.cannotBeAsked, .refuses, .types("cow")]), semaphore())
    let controller = listing(person, listed)
    let outcome = begin(request(controller))
    listed.wait()
    for reason in ["a person refused", "the passphrase was wrong three times"] {
      #expect(throws: StoreError.accessDenied(reason: reason + "; the request still waits")) {
        try controller.approve(1, by: approver, Withdrawal())
      }
    }
    #expect(throws: StoreError.notFound) { try controller.approve(2, by: approver, Withdrawal()) }
    #expect(controller.listedRequests().count == 1)
    try controller.deny(1)
    #expect(outcome.wait() != .unlocked)
  }

  /// A person at a terminal is asked at once, and the listed request goes on with the answer.
  @Test func aDialogUnlocksForListedRequestsToo() {
    let (person, listed) = (TypingPerson([.cannotBeAsked, .refuses, .types("horse")]), semaphore())
    let controller = listing(person, listed)
    let outcome = begin(request(controller))
    listed.wait()
    #expect(ask(controller, session: 2) == .stillLocked(reason: "a person refused"))
    #expect(controller.listedRequests().count == 1)
    #expect(ask(controller, session: 3) == .unlocked && outcome.wait() == .unlocked)
    #expect(controller.listedRequests().isEmpty)
  }

  @Test func listedRequestsEndInTimeWithTheSessionLockAndWithTheirProcess() {
    let (person, listed) = (TypingPerson([.cannotBeAsked]), semaphore())
    let late = listing(person, listed, timeout: 1)
    #expect(ask(late) == .stillLocked(reason: "it was not approved in time"))
    listed.wait()
    // As after a refusal, the session is not asked for a minute; the request can be approved as long.
    let count = person.count
    #expect(ask(late) == .stillLocked(reason: "it was not approved in time"))
    #expect(late.listedRequests().map(\.number) == [1] && person.count == count)
    #expect(throws: StoreError.accessDenied(reason: "there is no terminal; the request still waits")) {
      try late.approve(1, by: approver, Withdrawal())
    }
    // Time-outs of other sessions are no refusals in a row.
    for session in 2...5 {
      #expect(ask(late, session: Int32(session)) == .stillLocked(reason: "it was not approved in time"))
      listed.wait()
    }
    try? late.deny(1)
    #expect(late.listedRequests().map(\.number) == [2, 3, 4, 5])
    late.didUnlock()
    #expect(late.listedRequests().isEmpty)
    let controller = listing(person, listed)
    let withdrawn = request(controller)
    _ = begin(withdrawn)
    listed.wait()
    withdrawn.withdraw()
    #expect(controller.listedRequests().isEmpty)
    let paused = begin(request(controller))
    listed.wait()
    controller.pause()
    #expect(paused.wait() == .stillLocked(reason: UnlockController.paused))
  }

  @Test func theListIsBounded() {
    let (person, listed) = (TypingPerson([.cannotBeAsked]), semaphore())
    let controller = listing(person, listed)
    let waiting = (1...UnlockController.mostListed).map { request(controller, session: Int32($0)) }
    for request in waiting {
      _ = begin(request)
      listed.wait()
    }
    #expect(ask(controller, session: 1000) == .stillLocked(reason: "there is no terminal"))
    for request in waiting { request.withdraw() }
    #expect(controller.listedRequests().isEmpty)
  }

  private func semaphore() -> DispatchSemaphore { DispatchSemaphore(value: 0) }
}
