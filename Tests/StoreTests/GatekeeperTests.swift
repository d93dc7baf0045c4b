import Dispatch
import Glibc
import Model
import SecretMemory
import StoreConformance
import Synchronization
import Testing

@testable import Store

/// A person who answers as a test says, and remembers the questions.
private final class TestPerson: Authenticator {
  let questions = Mutex<[Question]>([])
  let answers: Mutex<[Answer]>
  /// Signalled once for each answer that may be given; nil: at once.
  let gate: DispatchSemaphore?

  init(_ answers: [Answer] = [], gate: DispatchSemaphore? = nil) {
    self.answers = Mutex(answers)
    self.gate = gate
  }

  func ask(_ question: Question, _ withdrawal: Withdrawal) -> Answer {
    questions.withLock { $0.append(question) }
    withdrawal.whenWithdrawn { [gate] in gate?.signal() }
    gate?.wait()
    return answers.withLock { $0.count > 1 ? $0.removeFirst() : $0.first ?? .approved(nil) }
  }

  var count: Int { questions.withLock { $0.count } }
}

/// A person who never answers.
private final class AbsentPerson: Authenticator {
  let count = Atomic<Int>(0)

  func ask(_ question: Question, _ withdrawal: Withdrawal) -> Answer {
    count.add(1, ordering: .relaxed)
    let end = DispatchSemaphore(value: 0)
    withdrawal.whenWithdrawn { end.signal() }
    end.wait()
    return .approved(nil)
  }
}

@Suite(.timeLimit(.minutes(1))) struct GatekeeperTests {
  private let engine = MemoryKeychain()
  private let time = Time()

  private final class Time: Sendable {
    let seconds = Atomic<UInt64>(1000)
  }

  private func store(
    _ person: any Authenticator, reuse: Int = 10, timeout: Int = 60
  ) -> KeychainStore {
    var options = Gatekeeper.Options()
    (options.reuse, options.timeout) = (reuse, timeout)
    let gatekeeper = Gatekeeper(
      person, options, now: { [time] in time.seconds.load(ordering: .relaxed) })
    return KeychainStore(engine: engine, gatekeeper: gatekeeper)
  }

  private func add(
    _ service: ExactString, _ access: AccessFlags = [.devicePasscode], programs: ExactString? = nil
  ) throws -> ItemID {
    var item = KeychainSamples.generic(service)
    (item.access, item.programs) = (access, programs)
    return try engine.add(item, "secret").id
  }

  private func asker(_ process: Int32, program: UInt64 = 1, terminal: String? = nil) -> Asker {
    Asker(
      process: .init(number: process, start: 0), program: "/bin/cat",
      programFile: .init(device: 0, inode: program), commandLine: "cat", parents: [], user: 0,
      terminal: terminal)
  }

  /// Starts to ask; the outcome comes later.
  private func begin(
    _ store: KeychainStore, _ item: ItemID, _ asker: Asker
  ) throws -> (PermissionRequest?, () -> Result<Permit, StoreError>) {
    switch try store.permission(for: item, path: item.rawValue, by: { asker }) {
    case .given(let permit):
      return (nil, { () -> Result<Permit, StoreError> in .success(permit) })
    case .asked(let request):
      let (done, outcome) = (DispatchSemaphore(value: 0), Outcome())
      request.start { result in
        outcome.value.withLock { $0 = result }
        done.signal()
      }
      return (
        request,
        {
          done.wait()
          return outcome.value.withLock { $0 } ?? .failure(.interrupted)
        }
      )
    }
  }

  private final class Outcome: Sendable {
    let value = Mutex<Result<Permit, StoreError>?>(nil)
  }

  private func ask(_ store: KeychainStore, _ item: ItemID, _ asker: Asker) throws -> StoreError? {
    switch try begin(store, item, asker).1() {
    case .success(let permit):
      #expect(try KeychainSamples.bytes(store.secret(of: item, permit)) == Array("secret".utf8))
      return nil
    case .failure(let error): return error
    }
  }

  /// An answer that is kept does not outlive the password that it gave.
  @Test func keptPasswordThatWasChangedIsAskedForAnew() throws {
    func password(_ text: String) throws -> ItemPassword { ItemPassword(try KeychainSamples.secret(text)) }
    var item = KeychainSamples.generic("a")
    item.access = [.applicationPassword]
    let id = try engine.using(password("old")).add(item, "secret").id
    let person = TestPerson([.approved(try password("old")), .approved(try password("new"))])
    let store = store(person)
    #expect(try ask(store, id, asker(1)) == nil)
    #expect(try ask(store, id, asker(1)) == nil)
    #expect(person.count == 1)
    try engine.using(password("old")).changePassword(of: id, to: password("new"))
    #expect(try ask(store, id, asker(1)) == nil)
    #expect(try ask(store, id, asker(1)) == nil)
    #expect(person.count == 2)
  }

  @Test func passwordIsChangedWithBothPermits() throws {
    func password(_ text: String) throws -> ItemPassword { ItemPassword(try KeychainSamples.secret(text)) }
    var item = KeychainSamples.generic("a")
    item.access = [.applicationPassword]
    let id = try engine.using(password("old")).add(item, "secret").id
    let store = store(TestPerson([.approved(try password("old")), .approved(try password("new"))]))
    let permit = try begin(store, id, asker(1)).1().get()
    let new = try store.permission(forNewPasswordAt: "a") { asker(1) }.fetch()
    #expect(throws: StoreError.self) { try store.changePassword(of: id, new, to: new) }
    try store.changePassword(of: id, permit, to: new)
    #expect(try engine.using(password("new")).bytes(of: id) == Array("secret".utf8))
  }

  @Test func secretNeedsItsOwnPermit() throws {
    let (a, b) = (try add("a"), try add("b"))
    let store = store(TestPerson())
    guard case .success(let permit) = try begin(store, a, asker(1)).1() else {
      Issue.record("refused")
      return
    }
    #expect(errno { _ = try store.secret(of: b, permit) } == EACCES)
    #expect(errno { _ = try store.secret(of: a) } == EACCES)
    _ = try store.secret(of: a, permit)
  }

  @Test func answerHoldsForTheProgramAndForTheProcess() throws {
    let (a, b) = (try add("a"), try add("b"))
    let person = TestPerson()
    let store = store(person)
    #expect(
      try ask(store, a, asker(1)) == nil && ask(store, a, asker(2)) == nil && ask(store, b, asker(1)) == nil)
    #expect(person.count == 1)
    #expect(try ask(store, a, asker(3, program: 2)) == nil)
    #expect(person.count == 2)
    time.seconds.add(10, ordering: .relaxed)
    #expect(try ask(store, a, asker(1)) == nil)
    #expect(person.count == 3)
    try store.lock()
    try store.unlock(KeychainSamples.secret(""))
    #expect(try ask(store, a, asker(1)) == nil)
    #expect(person.count == 4)
  }

  @Test func answerIsNeverReusedForMoreThanFiveMinutes() throws {
    let a = try add("a")
    let person = TestPerson()
    let store = store(person, reuse: 100_000)
    _ = try ask(store, a, asker(1))
    time.seconds.add(299, ordering: .relaxed)
    _ = try ask(store, a, asker(1))
    #expect(person.count == 1)
    time.seconds.add(1, ordering: .relaxed)
    _ = try ask(store, a, asker(1))
    #expect(person.count == 2)
  }

  @Test func withoutReuseEachIsAsked() throws {
    let a = try add("a")
    let person = TestPerson()
    let store = store(person, reuse: 0)
    for _ in 0..<3 { #expect(try ask(store, a, asker(1)) == nil) }
    #expect(person.count == 3)
  }

  @Test func fiftyReadersAreOneQuestion() throws {
    let items = try (0..<5).map { try add(ExactString("\($0)")) }
    let gate = DispatchSemaphore(value: 0)
    let person = TestPerson(gate: gate)
    let store = store(person)
    let outcomes = try (0..<50).map { try begin(store, items[$0 % 5], asker(Int32($0))).1 }
    gate.signal()
    for outcome in outcomes { #expect(throws: Never.self) { _ = try outcome().get() } }
    #expect(person.count == 1)
    #expect(person.questions.withLock { Set($0[0].items) } == Set(items.map(\.rawValue)))
  }

  @Test func threeRefusalsCloseAnItemForAMinute() throws {
    let a = try add("a")
    let person = TestPerson([.refused])
    let store = store(person, reuse: 0)
    for process in 0..<3 { #expect(try ask(store, a, asker(Int32(process)))?.errno == EACCES) }
    #expect(errno { _ = try ask(store, a, asker(9)) } == EACCES)
    #expect(person.count == 3)
    time.seconds.add(60, ordering: .relaxed)
    #expect(try ask(store, a, asker(9))?.errno == EACCES)
    #expect(person.count == 4)
  }

  @Test func refusalEndsAWalkThroughAFolder() throws {
    let (a, b) = (try add("a"), try add("b"))
    let person = TestPerson([.refused])
    let store = store(person)
    #expect(try ask(store, a, asker(1))?.errno == EACCES)
    #expect(errno { _ = try ask(store, b, asker(1)) } == EACCES)
    #expect(person.count == 1)
    #expect(try ask(store, b, asker(2))?.errno == EACCES)
    #expect(person.count == 2)
  }

  @Test func answersHaveTheirErrors() throws {
    let answers: [(Answer, StoreError)] = [
      (.refused, .accessDenied(reason: "")), (.rejected, .rejected), (.timedOut, .timedOut),
      (.impossible("x"), .accessDenied(reason: "")),
    ]
    for (index, (answer, error)) in answers.enumerated() {
      let item = try add(ExactString("\(index)"))
      #expect(try ask(store(TestPerson([answer])), item, asker(1))?.errno == error.errno)
    }
  }

  @Test func dialogThatNeverAnswersBlocksOnlyItsOwn() throws {
    let (a, b) = (try add("a"), try add("b"))
    let absent = AbsentPerson()
    let store = store(absent, timeout: 1)
    let first = try begin(store, a, asker(1, terminal: "/dev/pts/1")).1
    let second = try begin(store, b, asker(2, terminal: "/dev/pts/2")).1
    #expect(failure(first()) == .timedOut && failure(second()) == .timedOut)
    #expect(absent.count.load(ordering: .relaxed) == 2)
  }

  @Test func withdrawnQuestionClosesItsDialog() throws {
    let a = try add("a")
    let gate = DispatchSemaphore(value: 0)
    let person = TestPerson([.refused], gate: gate)
    let store = store(person, reuse: 0)
    let (request, _) = try begin(store, a, asker(1))
    while person.count == 0 { sched_yield() }
    request?.withdraw()
    // Another question is put only when the dialog is gone, and nobody has refused.
    person.answers.withLock { $0 = [.approved(nil)] }
    let next = try begin(store, a, asker(2)).1
    gate.signal()
    #expect(failure(next()) == nil)
  }

  @Test func rulesDecideByTheFile() throws {
    let person = TestPerson()
    let own = try #require(Asker.File("/bin/sh"))
    var shell = asker(1)
    shell.programFile = own
    let denied = try add("denied", [], programs: "deny /bin/sh\nallow *\n")
    let allowed = try add("allowed", [.devicePasscode], programs: "allow /usr/bin/../bin/sh\n")
    let asked = try add("asked", [], programs: "ask /bin/sh")
    let wrongDigest = try add(
      "digest", [],
      programs: ExactString("allow sha256:" + String(repeating: "0", count: 64) + " /bin/sh\ndeny *"))
    let store = store(person)
    #expect(errno { _ = try begin(store, denied, shell) } == EACCES)
    #expect(try ask(store, denied, asker(2)) == nil)
    #expect(try ask(store, allowed, shell) == nil && person.count == 0)
    #expect(errno { _ = try begin(store, wrongDigest, shell) } == EACCES)
    #expect(try ask(store, asked, shell) == nil && person.count == 1)
    #expect(person.questions.withLock { $0.first?.demand } == .consent)
  }

  @Test func rulesThatCantBeReadAskEverybody() throws {
    let person = TestPerson()
    let free = try add("free", [])
    let odd = try add("odd", [], programs: "let everybody in")
    let store = store(person)
    #expect(try ask(store, odd, asker(1)) == nil && person.count == 1)
    #expect(try ask(store, free, asker(1)) == nil && person.count == 1)
    var rules = KeychainSamples.generic("")
    (rules.identity, rules.attributes) = (.rules, ["generic/free": [0xFF]])
    _ = try engine.add(rules, "x")
    #expect(try ask(self.store(person), free, asker(2)) == nil && person.count == 2)
  }

  /// What may have rules is not given as if it had none.
  @Test func indexThatCantBeReadLetsNobodyIn() throws {
    _ = try add("free", [])
    let item = try #require(try engine.items().first)
    let failure = StoreError.unreachable(reason: "it hangs")
    engine.fail(with: failure)
    let store = store(TestPerson())
    #expect(throws: failure) { _ = try store.permission(for: item, path: "free", by: { asker(1) }) }
    #expect(throws: failure) { try store.checkAccess(to: item) }
    engine.fail(with: nil)
    try store.checkAccess(to: item)
  }

  @Test func whoCantBeToldIsRefused() throws {
    let a = try add("a")
    let store = store(TestPerson())
    #expect(errno { _ = try store.permission(for: a, path: "a", by: { nil }) } == EACCES)
    #expect(Asker(thread: 0) == nil && Asker(thread: getpid()) != nil)
  }

  @Test func protectionChangesWithAPermitOnly() throws {
    let a = try add("a")
    let store = store(TestPerson())
    #expect(errno { try store.update([a]) { $0.access = [] } } == EACCES)
    #expect(errno { try store.update([a]) { $0.programs = "allow *" } } == EACCES)
    #expect(errno { try store.update([a]) { $0.accessibility = .afterFirstUnlock } } == EACCES)
    try store.update([a]) { $0.label = "free" }
    guard case .success(let permit) = try begin(store, a, asker(1)).1() else {
      Issue.record("refused")
      return
    }
    try store.update([a], permit) { $0.access = [] }
    _ = try store.secret(of: a)
  }

  @Test(arguments: [
    ("devicePasscode", Demand.passcode), ("biometryAny", .biometry),
    ("userPresence", .any([.biometry, .passcode])),
    ("biometryAny|or|devicePasscode", .any([.biometry, .passcode])),
    ("biometryAny|and|devicePasscode", .all([.biometry, .passcode])),
    ("biometryAny|devicePasscode", .all([.biometry, .passcode])),
    ("biometryCurrentSet|applicationPassword", .biometryOfSet("x")),
  ])
  func flagsAreDemands(text: String, demand: Demand) throws {
    #expect(try #require(AccessFlags(text: text)).demand(ofSet: "x") == demand)
  }

  @Test(arguments: [
    ("biometryCurrentSet", nil), ("biometryCurrentSet|and|devicePasscode", nil),
    ("biometryCurrentSet|or|devicePasscode", Demand.passcode), ("devicePasscode", .passcode),
  ])
  func otherFingersMeetNothing(text: String, left: Demand?) throws {
    let flags = try #require(AccessFlags(text: text))
    let demand = try #require(flags.demand(ofSet: "old"))
    #expect(demand.settled({ "new" }) == left)
    #expect(demand.settled({ nil }) == left)
    #expect(demand.settled({ "old" }) != nil)
    // Without a set there is none that could be the same.
    let none = try #require(flags.demand())
    #expect(none.settled({ "" }) == left)
  }

  @Test func enrolledFingersAreWhatTheListSays() throws {
    let list =
      "found 1 devices\nFingerprints for user a on Mock (press):\n - #0: left-thumb\n - #1: right-thumb\n"
    let digest = try #require(EnrolledFingers.digest(ofList: list))
    let turned = "x\nFingerprints for user a on Mock (press):\n - #0: right-thumb\n - #1: left-thumb\n"
    #expect(EnrolledFingers.digest(ofList: turned) == digest)
    for (old, new) in [("left-thumb", "left-index-finger"), ("Mock", "Other"), (" - #1: right-thumb\n", "")] {
      #expect(EnrolledFingers.digest(ofList: list.replacing(old, with: new)) != digest)
    }
    #expect(EnrolledFingers.digest(ofList: "User a has no fingers enrolled for Mock.\n") == nil)
  }

  private func failure(_ outcome: Result<Permit, StoreError>) -> StoreError? {
    if case .failure(let error) = outcome { error } else { nil }
  }

  private func errno(_ body: () throws -> Void) -> Int32? {
    do { try body() } catch { return (error as? StoreError)?.errno }
    return nil
  }
}
