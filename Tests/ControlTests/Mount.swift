import Control
import Glibc
import Model
import Platform
import SecretMemory
import Store
import StoreConformance
import Synchronization

/// The process of a mount as others see it, without a mount: a keychain behind the control socket.
final class Mount: Sendable {
  let engine = MemoryKeychain()
  let store: KeychainStore
  let person = Person()
  let folder: String
  let service: TestService
  private let server: ControlServer?
  /// Of a mount that does not answer.
  private let listener: Mutex<StreamListener?>

  init(isReadOnly: Bool = false, isSilent: Bool = false, reuse: Int = 10) throws {
    engine.seal("horse")
    try engine.unlock(KeychainSamples.secret("horse"))
    var options = AccessController.Options()
    options.reuse = reuse
    store = KeychainStore(engine: engine, controller: AccessController(person, options))
    folder = try Self.makeFolder()
    service = TestService(store, isReadOnly)
    listener = Mutex(isSilent ? try StreamListener(at: "\(folder)/\(getpid()).control") : nil)
    server = isSilent ? nil : try ControlServer(folder: folder, service)
  }

  static func makeFolder() throws -> String {
    var template = Array("/tmp/control.XXXXXX\0".utf8.map { CChar($0) })
    return unsafe String(cString: mkdtemp(&template))
  }

  /// The keychain as another process has it.
  func open(patience: Int = 10) -> MountedKeychain {
    MountedKeychain(name: "memory", runtimeFolder: folder, patience: patience) { [self] in
      unsafe access("\(folder)/\(getpid()).control", F_OK) == 0 ? getpid() : nil
    }
  }

  /// Sends a request without identification.
  @discardableResult
  func ask(_ request: ControlMessage) throws -> ControlMessage {
    try ControlClient.ask(getpid(), in: folder, request)
  }

  /// No connection is accepted any more.
  func stop() {
    server?.end()
    listener.withLock { $0 = nil }
    unsafe unlink("\(folder)/\(getpid()).control")
  }

  deinit {
    unsafe unlink("\(folder)/\(getpid()).control")
    unsafe rmdir(folder)
  }
}

final class TestService: ControlService {
  private let store: KeychainStore
  let isReadOnly: Bool
  /// How often it was locked.
  let locks = Atomic<Int>(0)

  init(_ store: KeychainStore, _ isReadOnly: Bool) {
    (self.store, self.isReadOnly) = (store, isReadOnly)
  }

  var keychain: KeychainStore? { store }

  func lock() throws(StoreError) {
    locks.add(1, ordering: .relaxed)
    try store.lock()
  }

  func unlock(_ passphrase: borrowing SecretBytes) throws(StoreError) { try store.unlock(passphrase) }

  func oneTimeCode(of item: Item, _ permit: Permit) throws(StoreError) -> OneTimeCode {
    throw .unsupported(reason: "this process computes no codes")
  }

  func path(of item: ItemID) throws(StoreError) -> String? {
    try store.read { $0[item] }.map { path(of: $0.identity) }
  }

  func path(of identity: ItemIdentity) -> String { "\(identity)" }

  func path(of scope: RuleScope) -> String { "\(scope)" }

  func scope(at path: String) throws(StoreError) -> RuleScope { throw .notFound }

  func pauseReplay(_ done: @escaping @Sendable () -> Void) { done() }

  func resumeReplay() {}
}

/// Answers what a mount asks.
final class Person: Authenticator {
  private let state = Mutex((answer: Answer.approved(nil), questions: [Question]()))

  var questions: [Question] { state.withLock { $0.questions } }

  func say(_ answer: Answer) {
    state.withLock { $0.answer = answer }
  }

  func ask(_ question: Question, _ withdrawal: Withdrawal) -> Answer {
    state.withLock { state in
      state.questions.append(question)
      return state.answer
    }
  }
}

func holds(within seconds: Int = 20, _ condition: () throws -> Bool) rethrows -> Bool {
  let end = ContinuousClock.now + .seconds(seconds)
  while try !condition() {
    if ContinuousClock.now > end { return try condition() }
    sched_yield()
  }
  return true
}
