package import Model
import Platform
import SecretMemory
import Store
import Synchronization

/// The control socket of a mount: `PID.control` in the runtime folder.
///
/// A thread of its own accepts connections and reads until a request is complete. So connections that say nothing, or
/// half of something, cost a descriptor for two seconds and no thread. To lock has threads of its own too.
package final class ControlServer: Sendable {
  private let path: String
  private let loop: ControlLoop
  private let threads = WaitingThreads()

  /// Listens, and serves from now on.
  ///
  /// - Throws: `accessDenied` where the folder is not the user's own and private; `system`.
  package init(folder: String, _ service: any ControlService) throws(StoreError) {
    if let problem = RuntimeFolder.make(folder) {
      throw .accessDenied(reason: "\(folder) can't be used: \(problem)")
    }
    path = ControlClient.path(of: CurrentProcess.number, in: folder)
    // First, as the socket's file stays where something fails after it.
    let wake = try MessageChannel.makeWakePipe()
    do throws(Errno) { loop = ControlLoop(try StreamListener(at: path), wake, service) } catch {
      throw .system(error, operation: "bind")
    }
    // A secret that comes with a request passes through, whatever the limit of locked memory.
    let isTaken = threads.run { [loop] in withUnlockedMemoryWithoutSwap { loop.run() } }
    guard isTaken else { throw .outOfMemory }
  }

  /// No connection is accepted any more; those that are being served go on.
  package func end() {
    _ = try? Files.remove(path)
    loop.end()
    threads.finish()
  }
}

/// The thread that accepts and reads. What is in `pending` is used by it alone.
private final class ControlLoop: Sendable {
  /// So many connections may be without a complete request; the oldest goes for the next one.
  private static let mostPending = 64
  /// How long a greeting, and then a request, may take.
  private static let patience = Duration.seconds(2)

  /// nil: the thread has it.
  private let listener: Mutex<StreamListener?>
  private let service: any ControlService
  private let wake: WakePipe
  /// Connections that were identified by another thread, and the end.
  private let inbox = Mutex((identified: [PendingConnection](), isEnded: false))
  private let identifying = WaitingThreads()
  private let serving = WaitingThreads()
  private let watching = WaitingThreads()
  private let locking = SerialTurns()
  private let unlocking = SerialTurns()
  private let approving = WaitingThreads()
  private let batches = BatchPlace()

  init(_ listener: consuming StreamListener, _ wake: WakePipe, _ service: any ControlService) {
    self.listener = Mutex(consume listener)
    (self.wake, self.service) = (wake, service)
  }

  func end() {
    inbox.withLock { $0.isEnded = true }
    wake.wake()
  }

  /// Accepts and reads until the end; then the listening socket is closed.
  func run() {
    guard let listener = listener.withLock({ $0.take() }) else { return }
    var acceptor = Acceptor(listener)
    var pending: [PendingConnection] = []
    while !inbox.withLock({ $0.isEnded }) {
      let entries =
        [acceptor.entry, Poll.Entry(wake.readEnd)] + pending.map { Poll.Entry($0.socket.number) }
      let ready = Self.wait(for: entries, until: Self.deadline(pending, acceptor))
      let readable = zip(pending, ready.dropFirst(2)).filter { $1 }.map(\.0)
      let left = readable.filter { !advance($0) }
      pending.removeAll { connection in left.contains { $0 === connection } || connection.isLate }
      pending += takeIdentified()
      if ready[0] { pending += acceptor.accept(patience: Self.patience) }
      if pending.count > Self.mostPending { pending = Array(pending.suffix(Self.mostPending)) }
    }
  }

  private static func wait(for entries: [Poll.Entry], until deadline: ContinuousClock.Instant?) -> [Bool] {
    do throws(Errno) {
      return try Poll.wait(for: entries, until: deadline)
    } catch {
      Pause.microseconds(10_000)
      return entries.map { _ in false }
    }
  }

  /// nil: nothing has to be done by itself.
  private static func deadline(
    _ pending: [PendingConnection], _ acceptor: borrowing Acceptor
  ) -> ContinuousClock.Instant? {
    (pending.map(\.deadline) + (acceptor.resumesAt.map { [$0] } ?? [])).min()
  }

  private func takeIdentified() -> [PendingConnection] {
    wake.clear()
    return inbox.withLock { inbox in
      defer { inbox.identified = [] }
      return inbox.identified
    }
  }

  /// Reads what is there; false: the connection has ended, or another thread has it now.
  private func advance(_ connection: PendingConnection) -> Bool {
    do throws(StoreError) {
      switch try connection.read() {
      case .waiting: return true
      case .ended: return false
      case .line(let answer):
        // The other side may not have sent all of its line: closed too early, it would not read the answer.
        if let answer { connection.refuse(answer) }
        return true
      case .greeting(let version, let identified): return greet(connection, version, identified)
      case .request(let request):
        serve(request, connection)
        return false
      }
    } catch {
      connection.send(.failed(error))
      return false
    }
  }

  private func greet(_ connection: PendingConnection, _ version: UInt32, _ identified: Bool) -> Bool {
    guard version == ControlMessage.version else {
      connection.send(.hello(version: ControlMessage.version, challenge: 0))
      return false
    }
    guard identified else { return connection.welcome(nil, patience: Self.patience) }
    // Reading the files of a process in proc(5) may have to wait for that process.
    let isTaken = identifying.run { [self] in
      guard connection.welcome(ControlPeer(connection.socket), patience: Self.patience) else { return }
      inbox.withLock { $0.identified.append(connection) }
      wake.wake()
    }
    if !isTaken { connection.send(.failed(.tooManyOpen)) }
    return false
  }

  private func serve(_ request: Message, _ connection: PendingConnection) {
    guard !request.content.needsIdentification || connection.peer != nil else {
      connection.send(.failed(.accessDenied(reason: "this request needs an identified process")))
      return
    }
    guard request.content != .lock else { return lock(connection) }
    let session = ControlSession(
      channel: connection.channel(), peer: connection.peer, service: service, unlocking: unlocking,
      approving: approving, batches: batches)
    // A program that watches does so for as long as it lives: it takes no thread that a request needs.
    let threads = request.content.isWatch ? watching : serving
    let isTaken = threads.run { [service] in
      // A secret of any size passes through here, whatever the limit of locked memory.
      withUnlockedMemoryWithoutSwap { session.serve(request) }
      wipeStack()
      service.requestDidEnd()
    }
    if !isTaken { session.channel.send(.failed(.tooManyOpen)) }
  }

  private func lock(_ connection: PendingConnection) {
    let isTaken = locking.run { [service] in
      do throws(StoreError) {
        try service.lock()
        connection.send(.done)
      } catch {
        connection.send(.failed(error))
      }
    }
    if !isTaken { connection.send(.failed(.tooManyOpen)) }
  }
}
