import Dispatch
import Glibc
import Model
import Platform
import StoreConformance
import Synchronization
import Testing

@testable import Store

/// Requests that are listed and wait for `keyhole approve`.
@Suite(.timeLimit(.minutes(1))) struct ListedRequestTests: AccessTesting {
  let engine = MemoryKeychain()
  let time = TestTime()

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
}

private enum TemporaryFolder {
  static func folder() -> String { environment("TMPDIR") ?? "/tmp" }
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
