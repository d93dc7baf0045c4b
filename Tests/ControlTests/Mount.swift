import CLinux
import Control
import Dispatch
import Glibc
import Model
import Store
import StoreConformance
import Synchronization

/// What a mount's process is for others, without a mount: a keychain behind a socket.
final class Mount: Sendable {
  let engine = MemoryKeychain()
  let store: KeychainStore
  let person = Person()
  let folder: String
  private let listener: Int32
  private let threads = WaitingThreads()
  /// A socket at which nobody answers.
  let isSilent: Bool

  init(isReadOnly: Bool = false, isSilent: Bool = false, reuse: Int = 10) throws {
    engine.seal("horse")
    try engine.unlock(KeychainSamples.secret("horse"))
    var options = Gatekeeper.Options()
    options.reuse = reuse
    store = KeychainStore(engine: engine, gatekeeper: Gatekeeper(person, options))
    var template = Array("/tmp/doorbell.XXXXXX\0".utf8.map { CChar($0) })
    folder = unsafe String(cString: mkdtemp(&template))
    self.isSilent = isSilent
    listener = unsafe linux_listen("\(folder)/\(getpid()).control")
    guard !isSilent else { return }
    _ = threads.run { [listener, store, threads] in
      while true {
        var event = pollfd(fd: listener, events: Int16(POLLIN), revents: 0)
        unsafe poll(&event, 1, -1)
        let connection = linux_accept(listener, 60)
        guard connection >= 0 else {
          close(listener)
          return
        }
        Self.skipLine(connection)
        let names = KeychainServer.Names(item: { "\($0)" }, folder: { "\($0)" })
        let desk = KeychainServer(connection, store, isReadOnly: isReadOnly, names)
        _ = threads.run { desk.serve() }
      }
    }
  }

  /// The keychain as another process has it.
  func open(patience: Int = 10) -> MountedKeychain {
    MountedKeychain(name: "memory", runtimeFolder: folder, patience: patience) { [self] in
      unsafe access("\(folder)/\(getpid()).control", F_OK) == 0 ? getpid() : nil
    }
  }

  /// Nobody is heard any more.
  func stop() {
    unsafe unlink("\(folder)/\(getpid()).control")
    shutdown(listener, Int32(SHUT_RDWR))
    if isSilent { close(listener) }
  }

  deinit {
    unsafe unlink("\(folder)/\(getpid()).control")
    unsafe rmdir(folder)
  }

  private static func skipLine(_ connection: Int32) {
    var byte: UInt8 = 0
    while unsafe recv(connection, &byte, 1, 0) == 1, byte != UInt8(ascii: "\n") {}
  }
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
