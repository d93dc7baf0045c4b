import Dispatch
import Glibc
import Model
import Platform
import SecretMemory
import StoreConformance
import Synchronization
import Testing

@testable import Store

/// A person who answers as a test says, and remembers the questions.
final class TestPerson: Authenticator {
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
final class AbsentPerson: Authenticator {
  let count = Atomic<Int>(0)

  func ask(_ question: Question, _ withdrawal: Withdrawal) -> Answer {
    count.add(1, ordering: .relaxed)
    let end = DispatchSemaphore(value: 0)
    withdrawal.whenWithdrawn { end.signal() }
    end.wait()
    return .approved(nil)
  }
}

/// A clock that a test sets.
final class TestTime: Sendable {
  let seconds = Atomic<UInt64>(1000)
}

private final class Outcome: Sendable {
  let value = Mutex<Result<Permit, StoreError>?>(nil)
}

/// Tests of the controller with a keychain in memory.
protocol AccessTesting {
  var engine: MemoryKeychain { get }
  var time: TestTime { get }
}

extension AccessTesting {
  func store(
    _ person: any Authenticator, reuse: Int = 10, timeout: Int = 60,
    _ change: (inout AccessController.Options) -> Void = { _ in }
  ) -> KeychainStore {
    var options = AccessController.Options()
    (options.reuse, options.timeout) = (reuse, timeout)
    change(&options)
    let controller = AccessController(
      person, options, now: { [time] in time.seconds.load(ordering: .relaxed) })
    return KeychainStore(engine: engine, controller: controller)
  }

  func add(
    _ service: ExactString, _ access: AccessFlags = [.devicePasscode], programs: ExactString? = nil
  ) throws -> ItemID {
    var item = KeychainSamples.generic(service)
    (item.access, item.programs) = (access, programs)
    return try engine.add(item, "secret").id
  }

  /// A process that has another executable for each `program`.
  func caller(_ process: Int32, program: UInt64 = 1, terminal: String? = nil) -> Caller.Identity {
    var caller = Caller.Identity(
      process: .init(number: process, start: 0), user: 0,
      executable: .init(path: "/bin/cat", file: FileID(device: 0, inode: program)))
    caller.terminal = terminal
    return caller
  }

  /// Starts to ask; the outcome comes later.
  func begin(
    _ store: KeychainStore, _ item: ItemID, _ caller: Caller.Identity, to operation: AccessOperation = .read
  ) throws -> (PermissionRequest?, () -> Result<Permit, StoreError>) {
    switch try store.permission(for: item, to: operation, path: item.rawValue, by: Caller(caller)) {
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
    case .askedTogether: throw StoreError.interrupted
    }
  }

  func ask(
    _ store: KeychainStore, _ item: ItemID, _ caller: Caller.Identity, to operation: AccessOperation = .read
  ) throws -> StoreError? {
    switch try begin(store, item, caller, to: operation).1() {
    case .success(let permit):
      #expect(try KeychainSamples.bytes(store.secret(of: item, permit)) == Array("secret".utf8))
      return nil
    case .failure(let error): return error
    }
  }

  func failure(_ outcome: Result<Permit, StoreError>) -> StoreError? {
    if case .failure(let error) = outcome { error } else { nil }
  }

  func errno(_ body: () throws -> Void) -> Int32? {
    do { try body() } catch { return (error as? StoreError)?.errno.rawValue }
    return nil
  }
}
