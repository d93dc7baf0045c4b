import Dispatch
import Model
import Platform
import StoreConformance
import Synchronization
import Testing

@testable import Store

/// Approvals that hold for the next process of a command that did not wait.
@Suite(.timeLimit(.minutes(1))) struct NextProcessTests: AccessTesting {
  let engine = MemoryKeychain()
  let time = TestTime()

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
}
