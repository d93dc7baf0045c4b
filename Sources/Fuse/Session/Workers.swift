import Dispatch
import Platform
import Synchronization

/// The threads that read requests and have them answered, in place of `fuse_session_loop_mt`.
///
/// Threads that wait for the same device take turns, so that each request wakes another one, mostly on another
/// processor: measured, an open, read and close took 36 to 50 µs with four such threads and 13 µs with one. So one
/// thread reads, the reader, and answers what it has read. A second one, the spare, watches it only while there is
/// work, and takes over when it is held up; a new spare is started then. The one that was held up leaves, or becomes
/// the spare if there is none. A reader whose request is about to wait hands over itself. Then the reserve is the next spare, which is the one that has
/// handed over before: so there are three threads from the first time on.
final class Workers: Sendable {
  struct State {
    var reader: Worker?
    var spare: Worker?
    /// It sleeps until it is the spare.
    var reserve: Worker?
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
  /// True while the spare may sleep until the reader wakes it.
  let isAsleep = Atomic<Bool>(false)
  /// The reader has no spare: no further thread could be started.
  let isAlone = Atomic<Bool>(false)
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
      replaceSpare(&state)
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

  /// The spare has become the reader: the reserve is the spare now, or a new thread.
  private func replaceSpare(_ state: inout State) {
    state.spare = state.reserve ?? startSpare(&state)
    state.reserve = nil
    isAlone.store(state.spare == nil, ordering: .relaxed)
    // The reserve sleeps on, until the reader has work.
    isAsleep.store(true, ordering: .sequentiallyConsistent)
  }

  private func startSpare(_ state: inout State) -> Worker? {
    guard state.count < limit else { return nil }
    let spare = Worker()
    return start(spare, &state) ? spare : nil
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
      } else if isReserve(worker) {
        worker.wakes.wait()
      } else if let turn = watchReader(worker) {
        takeOver(worker, at: turn)
      }
    } while stays(worker)
    worker.end()
    runnerWakes.signal()
  }

  private func isReserve(_ worker: Worker) -> Bool { state.withLock { $0.reserve === worker } }

  /// Whether the thread goes on: as the reader, as the spare, or as the reserve.
  private func stays(_ worker: Worker) -> Bool {
    state.withLock { state in
      if !state.isDone {
        if worker.isReader.load(ordering: .acquiring) { return true }
        if state.spare === worker || state.reserve === worker { return true }
        if state.spare == nil {
          state.spare = worker
          isAlone.store(false, ordering: .relaxed)
          return true
        }
        if state.reserve == nil {
          state.reserve = worker
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
      if isAlone.load(ordering: .relaxed) { replaceMissingSpare() }
      wakeSpare()
      worker.process(connection)
      // No other thread changes it, and nothing is looked at after it.
      worker.turn.store(worker.turn.load(ordering: .relaxed) &+ 1, ordering: .releasing)
    }
  }

  private func finish(_ status: Int32) {
    let sleepers = state.withLock { state in
      if !connection.isExiting { state.status = status }
      state.isDone = true
      return [state.spare, state.reserve]
    }
    for sleeper in sleepers { sleeper?.wakes.signal() }
  }

  private func wakeSpare() {
    guard isAsleep.load(ordering: .sequentiallyConsistent) else { return }
    guard isAsleep.exchange(false, ordering: .sequentiallyConsistent) else { return }
    // Where the spare has become the reader meanwhile, it has got its own signal, and this one is another spare's, which only looks once more.
    state.withLock { $0.spare }?.wakes.signal()
  }
}

extension Workers {
  /// The reader, in the middle of a request that is about to wait, has the spare read in its place. Returns false where there is none, or the calling
  /// thread is not the reader.
  func handOver() -> Bool {
    let next = state.withLock { state -> Worker? in
      guard !state.isDone, let reader = state.reader, let spare = state.spare, reader.isCurrent else {
        return nil
      }
      reader.isReader.store(false, ordering: .releasing)
      spare.isReader.store(true, ordering: .releasing)
      state.reader = spare
      replaceSpare(&state)
      return spare
    }
    next?.wakes.signal()
    return next != nil
  }

  private func replaceMissingSpare() {
    state.withLock { if $0.spare == nil { replaceSpare(&$0) } }
  }

  /// Watches the reader while it works. Returns its turn when it is held up; nil when all is over, or this thread has become the reader.
  private func watchReader(_ worker: Worker) -> UInt64? {
    var last = readerTurn
    var quiet = 0
    while !state.withLock({ $0.isDone }) {
      var wasWoken = false
      if quiet < Self.quietLooks {
        wasWoken = worker.wakes.wait(timeout: .now() + Self.patience) == .success
      } else {
        sleep(worker, since: last)
        quiet = 0
      }
      if worker.isReader.load(ordering: .acquiring) {
        // It may have taken the mark for its own, and there is another spare.
        isAsleep.store(true, ordering: .sequentiallyConsistent)
        return nil
      }
      // Less time has passed.
      if wasWoken { continue }
      let turn = readerTurn
      if turn == last, turn & 1 == 1 { return turn }
      quiet = turn == last ? quiet + 1 : 0
      last = turn
    }
    return nil
  }

  /// Sleeps until the next request, unless one has come since.
  private func sleep(_ worker: Worker, since turn: UInt64) {
    isAsleep.store(true, ordering: .sequentiallyConsistent)
    // The reader first moves its turn and then looks whether we sleep; we do it the other way round, so one sees the
    // other. The one who sets the mark back owes, or is owed, no signal.
    if readerTurn != turn || state.withLock({ $0.isDone }),
      isAsleep.exchange(false, ordering: .sequentiallyConsistent)
    {
      return
    }
    worker.wakes.wait()
  }

  private var readerTurn: UInt64 {
    state.withLock { $0.reader?.turn.load(ordering: .sequentiallyConsistent) ?? 0 }
  }

  private func takeOver(_ worker: Worker, at turn: UInt64) {
    state.withLock { state in
      // The reader has gone on just now, or has handed over.
      guard let reader = state.reader, reader !== worker,
        reader.turn.load(ordering: .sequentiallyConsistent) == turn
      else { return }
      reader.isReader.store(false, ordering: .releasing)
      worker.isReader.store(true, ordering: .releasing)
      state.reader = worker
      replaceSpare(&state)
    }
  }
}
