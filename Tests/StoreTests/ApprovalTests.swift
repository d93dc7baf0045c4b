import Dispatch
import Glibc
import Model
import Platform
import StoreConformance
import Synchronization
import Testing

@testable import Store

/// Answers that hold longer than once, rules that a person has written by an answer, and requests that wait for `approve`.
@Suite(.timeLimit(.minutes(1))) struct ApprovalTests: AccessTesting {
  let engine = MemoryKeychain()
  let time = TestTime()

  /// A process of a program that only root can change, in a session.
  private func program(
    _ process: Int32, session: Caller.Identity.Process?, path: String = "/usr/bin/cat"
  ) throws -> Caller.Identity {
    let file = try #require(FileID(path))
    var caller = Caller.Identity(
      process: .init(number: process, start: 1), user: 0, executable: .init(path: path, file: file))
    caller.session = session
    return caller
  }

  private func ownSession() throws -> Caller.Identity.Process {
    try #require(Caller.Identity.Process(running: CurrentProcess.number))
  }

  private func keeping(_ person: any Authenticator) -> KeychainStore {
    store(person) { $0.keepsSessions = true }
  }

  // MARK: - For the session

  @Test func answerForTheSessionHoldsForTheProgramThere() throws {
    let (a, b) = (try add("a", [], programs: "ask *"), try add("b", [], programs: "ask *"))
    let person = TestPerson([.approved(nil, scope: .session), .approved(nil)])
    let (store, session) = (keeping(person), try ownSession())
    #expect(try ask(store, a, program(1, session: session)) == nil)
    time.seconds.add(3600, ordering: .relaxed)
    #expect(try ask(store, a, program(2, session: session)) == nil)
    #expect(person.count == 1)
    // Another item, another operation, another program, another session, another script.
    #expect(try ask(store, b, program(2, session: session)) == nil && person.count == 2)
    #expect(try ask(store, a, program(3, session: session), to: .write) == nil && person.count == 3)
    #expect(
      try ask(store, a, program(4, session: session, path: "/usr/bin/head")) == nil && person.count == 4)
    #expect(try ask(store, a, program(5, session: .init(number: 7, start: 7))) == nil && person.count == 5)
    var script = try program(6, session: session)
    script.script = "/opt/a.py"
    #expect(try ask(store, a, script) == nil && person.count == 6)
    #expect(person.questions.withLock { $0.map(\.offersSession) }.allSatisfy { $0 })
  }

  @Test func answerForTheSessionEndsWithTheLock() throws {
    let a = try add("a", [], programs: "ask *")
    let person = TestPerson([.approved(nil, scope: .session)])
    let (store, session) = (keeping(person), try ownSession())
    #expect(try ask(store, a, program(1, session: session)) == nil)
    try store.lock()
    try store.unlock(KeychainSamples.secret(""))
    #expect(try ask(store, a, program(2, session: session)) == nil && person.count == 2)
  }

  @Test func answerForTheSessionEndsWithItsLeader() throws {
    let a = try add("a", [], programs: "ask *")
    let person = TestPerson([.approved(nil, scope: .session)])
    let store = keeping(person)
    let leader = try Child(["/bin/sleep", "100"], input: .piped)
    let session = try #require(Caller.Identity.Process(running: leader.process))
    #expect(try ask(store, a, program(1, session: session)) == nil)
    #expect(try ask(store, a, program(2, session: session)) == nil && person.count == 1)
    leader.end()
    time.seconds.add(60, ordering: .relaxed)
    #expect(try ask(store, a, program(3, session: session)) == nil && person.count == 2)
  }

  /// The user could write another program into the file.
  @Test func answerForTheSessionIsForTheProgramAsItWas() throws {
    let folder = TemporaryFolder.folder()
    defer { _ = try? Files.remove(folder + "/tool") }
    let path = folder + "/tool"
    try Descriptor(path, [.writing, .create]).write(Array("one".utf8).span, at: 0)
    #expect(unsafe chmod(path, 0o666) == 0)
    let a = try add("a", [], programs: "ask *")
    let person = TestPerson([.approved(nil, scope: .session)])
    let (store, session) = (keeping(person), try ownSession())
    #expect(try ask(store, a, program(1, session: session, path: path)) == nil)
    // Its executable can't be read any more as the one that was approved.
    #expect(try ask(store, a, program(2, session: session, path: path)) == nil && person.count == 2)
  }

  @Test func sessionIsNotOfferedWithoutOne() throws {
    let a = try add("a", [], programs: "ask *")
    let person = TestPerson([.approved(nil, scope: .session)])
    let store = keeping(person)
    let interpreter = try program(3, session: ownSession(), path: Files.realPath("/usr/bin/perl"))
    for caller in [
      try program(1, session: nil), try program(2, session: .init(number: 9, start: 0)), interpreter,
    ] {
      #expect(try ask(store, a, caller) == nil)
    }
    #expect(person.questions.withLock { $0.map(\.offersSession) } == [false, false, false])
    #expect(person.questions.withLock { $0.map { $0.offeredRule != nil } } == [true, true, false])
    // A command that has its mount decide keeps nothing.
    let relaying = self.store(person)
    #expect(try ask(relaying, a, program(4, session: ownSession())) == nil)
    #expect(person.questions.withLock { $0.last?.offersSession } == false)
  }

  // MARK: - By a rule

  @Test func alwaysWritesARule() throws {
    let a = try add("a", [], programs: "allow /opt/other\nask *")
    let person = TestPerson([.approved(nil, scope: .always)])
    let store = store(person)
    #expect(try ask(store, a, program(1, session: nil)) == nil)
    #expect(try store.read { $0[a]?.programs } == "allow /usr/bin/cat\nallow /opt/other\nask *")
    #expect(try ask(store, a, program(2, session: nil)) == nil && person.count == 1)
  }

  @Test func neverWritesARule() throws {
    let a = try add("a", [], programs: "allow /usr/bin/cat\nask *")
    try store(TestPerson()).update([a], Permit(item: a, for: .change)) { $0.programs = "ask *" }
    let person = TestPerson([.never])
    let store = store(person)
    #expect(try ask(store, a, program(1, session: nil))?.errno == .EACCES)
    #expect(try store.read { $0[a]?.programs } == "deny /usr/bin/cat\nask *")
    #expect(errno { _ = try ask(store, a, program(2, session: nil)) } == EACCES)
    #expect(person.count == 1)
  }

  /// To change the rules of an item without flags takes the passphrase; the flags of others demand it anyway.
  @Test func ruleDemandsWhatAChangeDemands() throws {
    let (free, flagged) = (try add("free", [], programs: "ask *"), try add("flagged"))
    let person = TestPerson()
    let store = store(person)
    #expect(try ask(store, free, program(1, session: nil)) == nil)
    #expect(try ask(store, flagged, program(1, session: nil)) == nil)
    let demands = person.questions.withLock { $0.map { $0.offeredRule?.demand } }
    let change = store.consentToChange(sealed: false)
    #expect(demands == [change == .consent ? nil : change, nil])
  }

  // MARK: - Requests that wait

  private func listing(_ person: any Authenticator, listed: DispatchSemaphore, timeout: Int = 60)
    -> KeychainStore
  {
    store(person, timeout: timeout) { options in
      (options.keepsSessions, options.listsRequests) = (true, true)
      options.onListed = { _ in listed.signal() }
    }
  }

  @Test func questionWithoutAPlaceWaitsForApproval() throws {
    let a = try add("a", [], programs: "ask *")
    let person = TestPerson([.impossible("no window"), .approved(nil)])
    let listed = DispatchSemaphore(value: 0)
    let store = listing(person, listed: listed)
    let outcome = try begin(store, a, program(1, session: nil)).1
    listed.wait()
    let controller = try #require(store.controller)
    let request = try #require(controller.listedRequests().first)
    #expect(request.number == 1 && request.paths == [a.rawValue] && request.reason == "no window")
    #expect(errno { try controller.deny(2) } == ENOENT)
    var approver = try program(9, session: nil, path: "/usr/bin/head")
    approver.terminal = "/dev/pts/9"
    try controller.approve(1, .items, by: approver, Withdrawal())
    #expect(failure(outcome()) == nil)
    #expect(controller.listedRequests().isEmpty)
    // A plain yes is none: a program could type it.
    let question = try #require(person.questions.withLock { $0.last })
    #expect(question.demand == .any([.passcode, .biometry]))
    #expect(question.approver?.terminal == "/dev/pts/9" && question.caller.programName == "/usr/bin/cat")
    #expect(!question.offersSession && question.approvedScope == .items)
  }

  /// No proof could be given with `keyhole approve`.
  @Test func questionThatNothingHereAnswersIsRefusedAtOnce() throws {
    let a = try add("a", [], programs: "ask *")
    let store = store(TestPerson([.impossible("no window"), .impossible("no window")])) { options in
      (options.listsRequests, options.factors) = (true, { [] })
    }
    #expect(try failure(begin(store, a, program(1, session: nil)).1())?.errno == .EACCES)
    #expect(store.controller?.listedRequests().isEmpty == true)
  }

  @Test func refusedApprovalLeavesTheRequest() throws {
    let a = try add("a", [], programs: "ask *")
    let person = TestPerson([.impossible(""), .refused])
    let listed = DispatchSemaphore(value: 0)
    let store = listing(person, listed: listed)
    let outcome = try begin(store, a, program(1, session: nil)).1
    listed.wait()
    let controller = try #require(store.controller)
    let approver = try program(9, session: nil)
    #expect(errno { try controller.approve(1, .items, by: approver, Withdrawal()) } == EACCES)
    #expect(controller.listedRequests().count == 1)
    try controller.deny(1)
    #expect(failure(outcome())?.errno == .EACCES)
    #expect(controller.listedRequests().isEmpty)
  }

  /// The dialog of `keyhole approve` has shown one item. Of the requests that join the entry meanwhile, that for the same item is
  /// approved with it, and that for another one waits on.
  @Test func requestsThatJoinDuringTheDialogGetWhatItHasShown() throws {
    let (a, b) = (try add("a", [], programs: "ask *"), try add("b", [], programs: "ask *"))
    let (listed, person) = (DispatchSemaphore(value: 0), GatedPerson())
    let store = listing(person, listed: listed)
    let controller = try #require(store.controller)
    let (caller, approver) = (try program(1, session: nil), try program(9, session: nil))
    let shown = try begin(store, a, caller).1
    listed.wait()
    let approval = Promise<Bool>()
    let threads = WaitingThreads()
    _ = threads.run {
      approval.fulfill((try? controller.approve(1, .items, by: approver, Withdrawal())) != nil)
    }
    person.opened.wait()
    let same = try begin(store, a, caller).1
    let (other, _) = try begin(store, b, caller)
    let all = Set([a, b].map(\.rawValue))
    while Set(controller.listedRequests().flatMap(\.paths)) != all { sched_yield() }
    person.answer.signal()
    #expect(approval.wait())
    #expect(failure(shown()) == nil && failure(same()) == nil)
    #expect(controller.listedRequests().flatMap(\.paths) == [b.rawValue])
    other?.withdraw()
    #expect(controller.listedRequests().isEmpty)
  }

  /// A program that tries again for one of several items leaves one request.
  @Test func furtherTryJoinsTheRequestForSeveralItems() throws {
    let items = try ["a", "b", "c"].map { try add($0, [], programs: "ask *") }
    let person = LatePerson()
    let store = listing(person, listed: DispatchSemaphore(value: 0))
    let controller = try #require(store.controller)
    let caller = try program(1, session: nil)
    let listed = DispatchSemaphore(value: 0)
    func start(_ item: ItemID) throws {
      let permission = try store.permission(for: item, to: .read, path: item.rawValue, by: Caller(caller))
      guard case .asked(let request) = permission else { throw StoreError.interrupted }
      request.start(onListed: { listed.signal() }) { _ in }
    }
    // Those that come while a dialog is open have the next one together.
    try start(items[0])
    person.opened.wait()
    try start(items[1])
    try start(items[2])
    person.answer.signal()
    for _ in 1...3 { listed.wait() }
    try start(items[2])
    listed.wait()
    let names = items.map(\.rawValue)
    #expect(controller.listedRequests().map(\.paths) == [[names[0]], [names[1], names[2]]])
  }

  // MARK: - For the next process

  /// A process that has ended, of a command that another one has started.
  private func ended(
    _ process: Int32, _ commandLine: String = "cat a", starter: String = "/usr/bin/make",
    path: String = "/usr/bin/cat"
  ) throws -> Caller.Identity {
    var caller = try program(process, session: nil, path: path)
    (caller.commandLine, caller.parents) = (commandLine, ["\(starter) (\(process + 1))"])
    return caller
  }

  /// Asks for a process that gets an answer at once, when its request is listed.
  private func listWithoutWaiting(_ store: KeychainStore, _ item: ItemID, _ caller: Caller.Identity) throws {
    let permission = try store.permission(for: item, to: .read, path: item.rawValue, by: Caller(caller))
    guard case .asked(let request) = permission else { throw StoreError.interrupted }
    let listed = DispatchSemaphore(value: 0)
    request.start(onListed: {
      request.keepForNext()
      listed.signal()
    }) { _ in }
    listed.wait()
  }

  private func isGiven(
    _ store: KeychainStore, _ item: ItemID, _ caller: Caller.Identity, to operation: AccessOperation = .read
  ) throws -> Bool {
    let permission = try store.permission(for: item, to: operation, path: item.rawValue, by: Caller(caller))
    guard case .given = permission else { return false }
    return true
  }

  @Test func approvalHoldsOnceForTheNextProcessThatIsShownInTheSameWay() throws {
    let (a, b) = (try add("a", [], programs: "ask *"), try add("b", [], programs: "ask *"))
    let (listed, person) = (DispatchSemaphore(value: 0), GatedPerson())
    let store = listing(person, listed: listed)
    let controller = try #require(store.controller)
    try listWithoutWaiting(store, a, ended(1))
    // The command is tried again: it is one request.
    try listWithoutWaiting(store, a, ended(3))
    #expect(controller.listedRequests().map(\.number) == [1])
    person.answer.signal()
    try controller.approve(1, .items, by: program(9, session: nil), Withdrawal())
    #expect(try !isGiven(store, b, ended(5)))
    #expect(try !isGiven(store, a, ended(5), to: .write))
    #expect(try !isGiven(store, a, ended(5, "cat b")))
    #expect(try !isGiven(store, a, ended(5, starter: "/usr/bin/bash")))
    #expect(try !isGiven(store, a, ended(5, path: "/usr/bin/head")))
    var elsewhere = try ended(5)
    elsewhere.session = try ownSession()
    #expect(try !isGiven(store, a, elsewhere))
    #expect(try isGiven(store, a, ended(5)))
    #expect(try !isGiven(store, a, ended(7)))
  }

  @Test func approvalForTheNextProcessEndsAfterAMinute() throws {
    let a = try add("a", [], programs: "ask *")
    let (listed, person) = (DispatchSemaphore(value: 0), GatedPerson())
    let store = listing(person, listed: listed)
    let controller = try #require(store.controller)
    try listWithoutWaiting(store, a, ended(1))
    person.answer.signal()
    try controller.approve(1, .items, by: program(9, session: nil), Withdrawal())
    time.seconds.add(UInt64(AccessController.nextSeconds), ordering: .relaxed)
    #expect(try !isGiven(store, a, ended(5)))
  }

  @Test func approvalForTheNextProcessEndsWithTheLock() throws {
    let a = try add("a", [], programs: "ask *")
    let (listed, person) = (DispatchSemaphore(value: 0), GatedPerson())
    let store = listing(person, listed: listed)
    let controller = try #require(store.controller)
    try listWithoutWaiting(store, a, ended(1))
    person.answer.signal()
    try controller.approve(1, .items, by: program(9, session: nil), Withdrawal())
    try store.lock()
    try store.unlock(KeychainSamples.secret(""))
    #expect(try !isGiven(store, a, ended(5)))
  }

  /// A process that waits gets its answer itself, and no further one does.
  @Test func approvalOfAProcessThatWaitsIsNotForTheNext() throws {
    let a = try add("a", [], programs: "ask *")
    let (listed, person) = (DispatchSemaphore(value: 0), GatedPerson())
    let store = listing(person, listed: listed)
    let outcome = try begin(store, a, ended(1)).1
    listed.wait()
    person.answer.signal()
    try #require(store.controller).approve(1, .items, by: program(9, session: nil), Withdrawal())
    #expect(failure(outcome()) == nil)
    #expect(try !isGiven(store, a, ended(5)))
  }

  // MARK: - Numbers

  @Test func numbersOfSeveralProcessesDiffer() throws {
    let file = "\(TemporaryFolder.folder())/request-number-\(CurrentProcess.number)"
    defer { _ = try? Files.remove(file) }
    let (one, other) = (RequestNumbers(file: file), RequestNumbers(file: file))
    #expect([one.next(), other.next(), one.next(), other.next()] == [1, 2, 3, 4])
    // A file that is no file: the numbers are this process's own.
    let own = RequestNumbers(file: TemporaryFolder.folder())
    #expect([own.next(), own.next()] == [1, 2])
  }

  @Test func approvalMayHoldForTheSessionOrWriteARule() throws {
    let (a, b) = (try add("a", [], programs: "ask *"), try add("b", [], programs: "ask *"))
    let person = TestPerson([.impossible(""), .approved(nil), .impossible(""), .approved(nil)])
    let listed = DispatchSemaphore(value: 0)
    let (store, session) = (listing(person, listed: listed), try ownSession())
    let controller = try #require(store.controller)
    let approver = try program(9, session: nil)
    for (item, scope) in [(a, Answer.Scope.session), (b, .always)] {
      let outcome = try begin(store, item, program(1, session: session)).1
      listed.wait()
      let number = try #require(controller.listedRequests().first?.number)
      try controller.approve(number, scope, by: approver, Withdrawal())
      #expect(failure(outcome()) == nil)
      #expect(try ask(store, item, program(2, session: session)) == nil)
    }
    #expect(person.count == 4)
    #expect(try store.read { $0[b]?.programs } == "allow /usr/bin/cat\nask *")
  }

  @Test func requestsEndInTimeWithTheLockAndWithTheirProcess() throws {
    let a = try add("a", [], programs: "ask *")
    let listed = DispatchSemaphore(value: 0)
    let store = listing(TestPerson([.impossible("")]), listed: listed, timeout: 1)
    let controller = try #require(store.controller)
    let late = try begin(store, a, program(1, session: nil)).1
    listed.wait()
    #expect(failure(late()) == .timedOut)
    let (withdrawn, _) = try begin(store, a, program(2, session: nil))
    listed.wait()
    withdrawn?.withdraw()
    #expect(controller.listedRequests().isEmpty)
    let locked = try begin(store, a, program(3, session: nil)).1
    listed.wait()
    try store.lock()
    #expect(failure(locked()) == .locked)
  }

  @Test func listIsBounded() throws {
    let a = try add("a", [], programs: "ask *")
    let listed = DispatchSemaphore(value: 0)
    let store = listing(TestPerson([.impossible("")]), listed: listed)
    let waiting = try (0..<AccessController.mostListed).map {
      try begin(store, a, program(Int32($0 + 1), session: nil))
    }
    for _ in waiting { listed.wait() }
    let last = try begin(store, a, program(1000, session: nil)).1
    #expect(failure(last())?.errno == .EACCES)
    for (request, _) in waiting { request?.withdraw() }
  }

  // MARK: - Browsers of files

  @Test func browserCausesNoQuestion() throws {
    let (guarded, free) = (try add("guarded", [], programs: "ask *"), try add("free", []))
    let allowed = try add("allowed", [], programs: "allow /usr/bin/cat\nask *")
    let person = TestPerson()
    let store = store(person) { $0.browsers = BrowserList(["/usr/bin/cat"]) }
    let browser = try program(1, session: nil)
    #expect(errno { _ = try ask(store, guarded, browser) } == EACCES)
    #expect(try ask(store, free, browser) == nil && ask(store, allowed, browser) == nil)
    #expect(person.count == 0)
    #expect(
      try ask(store, guarded, program(2, session: nil, path: "/usr/bin/head")) == nil && person.count == 1)
  }

  @Test func browserIsAProgramOfRoot() throws {
    #expect(BrowserList(["/usr/bin/c*"]).paths.count == 1)
    // A person types these commands.
    #expect(!BrowserList.usual.paths.contains { $0.hasSuffix("/gio") || $0.hasSuffix("/cat") })
    #expect(try BrowserList(["/usr/*/cat"]).contains(program(1, session: nil)))
    #expect(try !BrowserList(["/*/cat"]).contains(program(1, session: nil)))
    #expect(
      BrowserList(reading: "# a\n/usr/bin/a b\n\nrelative\n/usr/bin/c\r\n").paths == [
        "/usr/bin/a b", "/usr/bin/c",
      ])
  }
}

private enum TemporaryFolder {
  static func folder() -> String { environment("TMPDIR") ?? "/tmp" }
}

/// Can be asked by `keyhole approve` only, and answers when the test says so.
private final class GatedPerson: Authenticator {
  let opened = DispatchSemaphore(value: 0)
  let answer = DispatchSemaphore(value: 0)

  func ask(_ question: Question, _ withdrawal: Withdrawal) -> Answer {
    guard question.approver != nil else { return .impossible("no window") }
    opened.signal()
    answer.wait()
    return .approved(nil)
  }
}

/// The first dialog waits for the test; none can be shown then.
private final class LatePerson: Authenticator {
  let opened = DispatchSemaphore(value: 0)
  let answer = DispatchSemaphore(value: 0)
  private let isFirst = Mutex(true)

  func ask(_ question: Question, _ withdrawal: Withdrawal) -> Answer {
    guard isFirst.withLock({ $0.take() }) else { return .impossible("no window") }
    opened.signal()
    answer.wait()
    return .impossible("no window")
  }
}

extension Bool {
  fileprivate mutating func take() -> Bool {
    defer { self = false }
    return self
  }
}
