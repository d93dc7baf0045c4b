import Dispatch
import Platform
import Testing

@testable import Store

// Processes that ask, and requests that are listed for `keyhole approve`.
extension AccessTesting {
  /// A process of a program that only root can change, in a session.
  func program(
    _ process: Int32, session: Caller.Identity.Process?, path: String = "/usr/bin/cat"
  ) throws -> Caller.Identity {
    let file = try #require(FileID(path))
    var caller = Caller.Identity(
      process: .init(number: process, start: 1), user: 0, executable: .init(path: path, file: file))
    caller.session = session
    return caller
  }

  func ownSession() throws -> Caller.Identity.Process {
    try #require(Caller.Identity.Process(running: CurrentProcess.number))
  }

  func listing(_ person: any Authenticator, listed: DispatchSemaphore, timeout: Int = 60)
    -> KeychainStore
  {
    store(person, timeout: timeout) { options in
      (options.keepsSessions, options.listsRequests) = (true, true)
      options.onListed = { _ in listed.signal() }
    }
  }
}

/// Can be asked by `keyhole approve` only, and answers when the test says so.
final class GatedPerson: Authenticator {
  let opened = DispatchSemaphore(value: 0)
  let answer = DispatchSemaphore(value: 0)

  func ask(_ question: Question, _ withdrawal: Withdrawal) -> Answer {
    guard question.approver != nil else { return .impossible("no window") }
    opened.signal()
    answer.wait()
    return .approved(nil)
  }
}
