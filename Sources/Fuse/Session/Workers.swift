import Dispatch
import Platform
import Synchronization

/// The threads that read requests and have them answered, in place of `fuse_session_loop_mt`.
///
/// Threads that wait for the same device take turns, so that each request wakes another one, mostly on another
/// processor: measured, an open, read and close took 36 to 50 µs with four such threads and 13 µs with one. So one
/// thread reads, the reader, and answers what it has read. A second one, the spare, watches it only while there is
/// work, and takes over when it is held up; a new spare is started then. The one that was held up leaves, or becomes
/// the spare if there is none.
final class Workers: Sendable {
  struct State {
    var reader: Worker?
    var hasSpare = false
    var count = 0
    var status: Int32 = 0
    var isDone = false
  }

  /// How long a request may hold up the others before the spare takes over.
  static let patience = DispatchTimeInterval.milliseconds(4)
  /// After so many looks without any work the spare goes to sleep.
  static let quietLooks = 8

  let connection: Connection
  let limit: Int
  let state = Mutex(State())
  /// True while the spare sleeps until the reader wakes it.
  let isAsleep = Atomic<Bool>(false)
  let spareWakes = DispatchSemaphore(value: 0)
  let runnerWakes = DispatchSemaphore(value: 0)

  init(_ connection: Connection, limit: Int) {
    self.connection = connection
    self.limit = max(limit, 1)
  }
}

extension Workers {
  /// Works until the mount is gone or the session has to exit, and returns 0 or a negative error number.
  func run() -> Int32 {
    state.withLock { state in
      let reader = Worker()
      // Before its thread runs, or it could take itself for the spare, and no thread would read.
      reader.isReader.store(true, ordering: .releasing)
      guard start(reader, &state) else { return state.status = -Errno.EAGAIN.rawValue }
      state.reader = reader
      state.hasSpare = limit > 1 && start(Worker(), &state)
    }
    while state.withLock({ $0.count > 0 }) {
      _ = runnerWakes.wait(timeout: connection.isExiting ? .now() + .milliseconds(2) : .distantFuture)
      if connection.isExiting { interruptReader() }
    }
    return state.withLock { $0.status }
  }

  /// The session has to exit: ends the reader's wait for a request.
  func wake() {
    runnerWakes.signal()
  }

  /// A signal that comes just before the wait is lost, so the runner sends it again until all is over.
  private func interruptReader() {
    state.withLock { state in
      // Under the lock, so that the thread is still there; and not in the middle of a request.
      guard !state.isDone, let reader = state.reader, !reader.isBusy else { return }
      reader.interrupt()
    }
  }

  private func start(_ worker: Worker, _ state: inout State) -> Bool {
    guard ThreadID.start({ self.work(worker) }) else { return false }
    state.count += 1
    return true
  }
}

extension Workers {
  private func work(_ worker: Worker) {
    worker.begin()
    repeat {
      if worker.isReader.load(ordering: .acquiring) {
        serve(worker)
      } else if watchReader() {
        takeOver(worker)
      }
    } while stays(worker)
    worker.end()
    runnerWakes.signal()
  }

  /// Whether the thread goes on: as the reader, or as the spare.
  private func stays(_ worker: Worker) -> Bool {
    state.withLock { state in
      if !state.isDone {
        if worker.isReader.load(ordering: .acquiring) { return true }
        if !state.hasSpare {
          state.hasSpare = true
          return true
        }
      }
      state.count -= 1
      return false
    }
  }

  /// Answers one request after the other, until all is over or the spare has taken over.
  private func serve(_ worker: Worker) {
    var wasCutOff = false
    while worker.isReader.load(ordering: .acquiring) {
      if connection.isExiting { return finish(0) }
      let status = worker.receive(connection)
      if status == -Errno.EINTR.rawValue { continue }
      // An unmount too cuts off who is just taking a request; the next read tells it (ENODEV) from an abort.
      if status == -Errno.ECONNABORTED.rawValue, !wasCutOff {
        wasCutOff = true
        continue
      }
      guard status > 0 else { return finish(status) }
      worker.turn.add(1, ordering: .sequentiallyConsistent)
      wakeSpare()
      worker.process(connection)
      // No other thread changes it, and nothing is looked at after it.
      worker.turn.store(worker.turn.load(ordering: .relaxed) &+ 1, ordering: .releasing)
    }
  }

  private func finish(_ status: Int32) {
    state.withLock { state in
      if !connection.isExiting { state.status = status }
      state.isDone = true
    }
    spareWakes.signal()
  }

  private func wakeSpare() {
    guard isAsleep.load(ordering: .sequentiallyConsistent) else { return }
    if isAsleep.exchange(false, ordering: .sequentiallyConsistent) { spareWakes.signal() }
  }
}

extension Workers {
  /// Watches the reader while it works; true when it is held up, false when all is over.
  private func watchReader() -> Bool {
    var last = readerTurn
    var quiet = 0
    while !state.withLock({ $0.isDone }) {
      if quiet < Self.quietLooks {
        _ = spareWakes.wait(timeout: .now() + Self.patience)
      } else {
        sleep(since: last)
        quiet = 0
      }
      let turn = readerTurn
      if turn == last, turn & 1 == 1 { return true }
      quiet = turn == last ? quiet + 1 : 0
      last = turn
    }
    return false
  }

  /// Sleeps until the next request, unless one has come since.
  private func sleep(since turn: UInt64) {
    isAsleep.store(true, ordering: .sequentiallyConsistent)
    // The reader first moves its turn and then looks whether we sleep; we do it the other way round, so one sees the
    // other. The one who sets the mark back owes, or is owed, no signal.
    if readerTurn != turn || state.withLock({ $0.isDone }),
      isAsleep.exchange(false, ordering: .sequentiallyConsistent)
    {
      return
    }
    spareWakes.wait()
  }

  private var readerTurn: UInt64 {
    state.withLock { $0.reader?.turn.load(ordering: .sequentiallyConsistent) ?? 0 }
  }

  private func takeOver(_ worker: Worker) {
    state.withLock { state in
      state.reader?.isReader.store(false, ordering: .releasing)
      worker.isReader.store(true, ordering: .releasing)
      state.reader = worker
      state.hasSpare = state.count < limit && start(Worker(), &state)
    }
  }
}
