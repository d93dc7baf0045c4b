import Dispatch
import Glibc
import Model
import Platform
import SecretMemory
import StoreConformance
import Synchronization
import Testing

@testable import Store

@Suite(.timeLimit(.minutes(1))) struct AccessControllerTests: AccessTesting {
  let engine = MemoryKeychain()
  let time = TestTime()

  /// The setting `presence-button`.
  @Test func aButtonMeetsPresenceAndNothingElse() throws {
    let person = TestPerson()
    let store = store(person, reuse: 0) { $0.presenceByButton = true }
    let flags: [AccessFlags] = [
      [.userPresence], [.devicePasscode], [.userPresence, .or, .devicePasscode],
      [.userPresence, .and, .biometryAny],
    ]
    let items = try flags.enumerated().map { try add(ExactString("s\($0.offset)"), $0.element) }
    for item in items { #expect(try ask(store, item, caller(1)) == nil) }
    _ = try begin(store, items[0], caller(1), to: .change).1()
    let (demands, rules) = person.questions.withLock { questions in
      (questions.map(\.demand), questions.map { $0.offeredRule?.demand })
    }
    let proof = Demand.any([.biometry, .passcode])
    #expect(demands[0] == .consent && demands[1] == .passcode && demands[4] == proof)
    #expect(demands[2] == .any([.consent, .passcode]) || demands[2] == .any([.passcode, .consent]))
    #expect(demands[3] == .all([.consent, .biometry]) || demands[3] == .all([.biometry, .consent]))
    // A rule in the place of an answer takes the proof.
    #expect(rules[0] == proof && rules[1] == nil)
  }

  /// An answer that is kept does not outlive the password that it gave.
  @Test func keptPasswordThatWasChangedIsAskedForAgain() throws {
    func password(_ text: String) throws -> ItemPassword { ItemPassword(try KeychainSamples.secret(text)) }
    var item = KeychainSamples.generic("a")
    item.access = [.applicationPassword]
    let id = try engine.using(password("old")).add(item, "secret").id
    let person = TestPerson([.approved(try password("old")), .approved(try password("new"))])
    let store = store(person)
    #expect(try ask(store, id, caller(1)) == nil)
    #expect(try ask(store, id, caller(1)) == nil)
    #expect(person.count == 1)
    try engine.changePassword(of: id, from: password("old"), to: password("new"))
    #expect(try ask(store, id, caller(1)) == nil)
    #expect(try ask(store, id, caller(1)) == nil)
    #expect(person.count == 2)
  }

  @Test func passwordIsChangedWithBothPermits() throws {
    func password(_ text: String) throws -> ItemPassword { ItemPassword(try KeychainSamples.secret(text)) }
    var item = KeychainSamples.generic("a")
    item.access = [.applicationPassword]
    let id = try engine.using(password("old")).add(item, "secret").id
    let store = store(TestPerson([.approved(try password("old")), .approved(try password("new"))]))
    let permit = try begin(store, id, caller(1)).1().get()
    let new = try store.permission(forNewPasswordAt: "a", by: Caller(caller(1))).fetch()
    #expect(throws: StoreError.self) { try store.changePassword(of: id, new, to: new) }
    try store.changePassword(of: id, permit, to: new)
    #expect(try engine.using(password("new")).bytes(of: id) == Array("secret".utf8))
  }

  @Test func secretNeedsItsOwnPermit() throws {
    let (a, b) = (try add("a"), try add("b"))
    let store = store(TestPerson())
    guard case .success(let permit) = try begin(store, a, caller(1)).1() else {
      Issue.record("refused")
      return
    }
    #expect(errno { _ = try store.secret(of: b, permit) } == EACCES)
    #expect(errno { _ = try store.secret(of: a) } == EACCES)
    _ = try store.secret(of: a, permit)
  }

  @Test func answerHoldsForTheProcessTheItemAndTheOperation() throws {
    let (a, b) = (try add("a"), try add("b"))
    let person = TestPerson()
    let store = store(person)
    #expect(try ask(store, a, caller(1)) == nil && ask(store, a, caller(1)) == nil)
    #expect(person.count == 1)
    // Another process, another program in the same one, another item, another operation.
    #expect(try ask(store, a, caller(2)) == nil && person.count == 2)
    #expect(try ask(store, a, caller(1, program: 2)) == nil && person.count == 3)
    #expect(try ask(store, b, caller(1)) == nil && person.count == 4)
    #expect(try ask(store, a, caller(1), to: .write) == nil && person.count == 5)
    #expect(try ask(store, a, caller(1), to: .readWrite) == nil && person.count == 6)
    #expect(try ask(store, a, caller(1), to: .write) == nil && person.count == 6)
    time.seconds.add(10, ordering: .relaxed)
    #expect(try ask(store, a, caller(1)) == nil && person.count == 7)
    try store.lock()
    try store.unlock(KeychainSamples.secret(""))
    #expect(try ask(store, a, caller(1)) == nil && person.count == 8)
  }

  /// The script of an interpreter is another program, also in the same process (execve(2)).
  @Test func answerToOneScriptIsNoneToAnother() throws {
    let a = try add("a")
    let person = TestPerson()
    let store = store(person)
    var (one, other) = (caller(1), caller(1))
    (one.script, other.script) = ("/opt/a.py", "/opt/b.py")
    #expect(try ask(store, a, one) == nil && ask(store, a, other) == nil)
    #expect(person.count == 2)
  }

  /// A wider answer is offered with the second question only, and holds for the same process and operation.
  @Test func widerAnswerHasToBeChosen() throws {
    let items = try (0..<4).map { try add(ExactString("\($0)")) }
    let other = try add("other", [.userPresence])
    let person = TestPerson([.approved(nil), .approved(nil, scope: .process)])
    let store = store(person)
    #expect(try ask(store, items[0], caller(1)) == nil && ask(store, items[1], caller(1)) == nil)
    #expect(person.questions.withLock { $0.map(\.offersProcess) } == [false, true])
    #expect(try ask(store, items[2], caller(1)) == nil && ask(store, items[3], caller(1)) == nil)
    #expect(person.count == 2)
    #expect(try ask(store, items[2], caller(2)) == nil && person.count == 3)
    #expect(try ask(store, items[2], caller(1), to: .write) == nil && person.count == 4)
    #expect(try ask(store, other, caller(1)) == nil && person.count == 5)
  }

  @Test func answerIsNeverReusedForMoreThanFiveMinutes() throws {
    let a = try add("a")
    let person = TestPerson()
    let store = store(person, reuse: 100_000)
    _ = try ask(store, a, caller(1))
    time.seconds.add(299, ordering: .relaxed)
    _ = try ask(store, a, caller(1))
    #expect(person.count == 1)
    time.seconds.add(1, ordering: .relaxed)
    _ = try ask(store, a, caller(1))
    #expect(person.count == 2)
  }

  @Test func withoutReuseEachIsAsked() throws {
    let a = try add("a")
    let person = TestPerson()
    let store = store(person, reuse: 0)
    for _ in 0..<3 { #expect(try ask(store, a, caller(1)) == nil) }
    #expect(person.count == 3)
  }

  @Test func fiftyReadersAreOneQuestion() throws {
    let items = try (0..<5).map { try add(ExactString("\($0)")) }
    let gate = DispatchSemaphore(value: 0)
    let person = TestPerson(gate: gate)
    let store = store(person)
    let outcomes = try (0..<50).map { try begin(store, items[$0 % 5], caller(1)).1 }
    gate.signal()
    for outcome in outcomes { #expect(throws: Never.self) { _ = try outcome().get() } }
    #expect(person.count == 1)
    #expect(person.questions.withLock { Set($0[0].items) } == Set(items.map(\.rawValue)))
  }

  @Test func threeRefusalsCloseAnItemForAMinute() throws {
    let a = try add("a")
    let person = TestPerson([.refused])
    let store = store(person, reuse: 0)
    for process in 0..<3 { #expect(try ask(store, a, caller(Int32(process)))?.errno.rawValue == EACCES) }
    #expect(errno { _ = try ask(store, a, caller(9)) } == EACCES)
    #expect(person.count == 3)
    time.seconds.add(60, ordering: .relaxed)
    #expect(try ask(store, a, caller(9))?.errno.rawValue == EACCES)
    #expect(person.count == 4)
  }

  @Test func refusalEndsAWalkThroughAFolder() throws {
    let (a, b) = (try add("a"), try add("b"))
    let person = TestPerson([.refused])
    let store = store(person)
    #expect(try ask(store, a, caller(1))?.errno.rawValue == EACCES)
    #expect(errno { _ = try ask(store, b, caller(1)) } == EACCES)
    #expect(person.count == 1)
    #expect(try ask(store, b, caller(2))?.errno.rawValue == EACCES)
    #expect(person.count == 2)
  }

  @Test func answersHaveTheirErrors() throws {
    let answers: [(Answer, StoreError)] = [
      (.refused, .accessDenied(reason: "")), (.rejected, .rejected), (.timedOut, .timedOut),
      (.impossible("x"), .accessDenied(reason: "")),
    ]
    for (index, (answer, error)) in answers.enumerated() {
      let item = try add(ExactString("\(index)"))
      #expect(try ask(store(TestPerson([answer])), item, caller(1))?.errno.rawValue == error.errno.rawValue)
    }
  }

  @Test func dialogThatNeverAnswersBlocksOnlyItsOwn() throws {
    let (a, b) = (try add("a"), try add("b"))
    let absent = AbsentPerson()
    let store = store(absent, timeout: 1)
    let first = try begin(store, a, caller(1, terminal: "/dev/pts/1")).1
    let second = try begin(store, b, caller(2, terminal: "/dev/pts/2")).1
    #expect(failure(first()) == .timedOut && failure(second()) == .timedOut)
    #expect(absent.count.load(ordering: .relaxed) == 2)
  }

  /// 600 calls that wait take every thread that Dispatch has.
  @Test func questionsEndInTimeWhileDispatchHasNoThread() throws {
    let (gate, all) = (DispatchSemaphore(value: 0), DispatchGroup())
    for _ in 0..<600 {
      all.enter()
      Background.run {
        gate.wait()
        all.leave()
      }
    }
    defer {
      for _ in 0..<600 { gate.signal() }
      all.wait()
    }
    let isReached = DispatchSemaphore(value: 0)
    Background.run { isReached.signal() }
    #expect(isReached.wait(timeout: .now() + .milliseconds(100)) == .timedOut, "Dispatch has threads left")
    let absent = AbsentPerson()
    let store = store(absent, timeout: 1)
    let outcome = try begin(store, try add("a"), caller(1)).1
    #expect(failure(outcome()) == .timedOut)
    // It was asked: the dialog was opened, too.
    #expect(absent.count.load(ordering: .relaxed) == 1)
  }

  @Test func withdrawnQuestionClosesItsDialog() throws {
    let a = try add("a")
    let gate = DispatchSemaphore(value: 0)
    let person = TestPerson([.refused], gate: gate)
    let store = store(person, reuse: 0)
    let (request, _) = try begin(store, a, caller(1))
    while person.count == 0 { sched_yield() }
    request?.withdraw()
    // Another question is put only when the dialog is gone, and no refusal counts.
    person.answers.withLock { $0 = [.approved(nil)] }
    let next = try begin(store, a, caller(2)).1
    gate.signal()
    #expect(failure(next()) == nil)
  }

  @Test func openQuestionsEndWithTheLock() throws {
    let a = try add("a")
    let absent = AbsentPerson()
    let store = store(absent)
    let first = try begin(store, a, caller(1)).1
    while absent.count.load(ordering: .relaxed) == 0 { sched_yield() }
    guard case .asked(let late) = try store.permission(for: a, to: .read, path: "a", by: Caller(caller(2)))
    else {
      Issue.record("not asked")
      return
    }
    try store.lock()
    #expect(failure(first()) == .locked)
    #expect(throws: StoreError.locked) { _ = try Permission.asked(late).fetch() }
    #expect(absent.count.load(ordering: .relaxed) == 1)
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
}
