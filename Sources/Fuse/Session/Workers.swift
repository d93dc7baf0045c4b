import Dispatch
import Platform
import Synchronization

/// The threads that read requests and have them answered, in place of `fuse_session_loop_mt`.
///
/// Threads that wait for the same device take turns, so that each request wakes another one, mostly on another
/// processor: measured, an open, read and close took 36 to 50 µs with four such threads and 13 µs with one. So one
/// thread reads, the reader, and answers what it has read. A second one, the spare, watches it only while there is
/// work, and takes over when it is held up; a new spare is started then. The one that was held up leaves, or becomes
/// the spare if there is none. A reader whose request is about to wait hands over itself, and becomes the spare afterwards.
final class Workers: Sendable {
  struct State {
    var reader: Worker?
    var spare: Worker?
    /// When the reader was left without a spare.
    var alone: ContinuousClock.Instant?
    var count = 0
    var status: Int32 = 0
    var isDone = false
  }

  /// How long a request may hold up the others before the spare takes over.
  static let patience = DispatchTimeInterval.milliseconds(4)
  /// The same for a reader that has handed over: from then on, the next request gets another spare.
  private static let patienceWithHandedOver = Duration.milliseconds(4)
  /// After so many looks without any work the spare goes to sleep.
  static let quietLooks = 8

  let connection: Connection
  let limit: Int
  let state = Mutex(State())
  /// True while the spare sleeps until the reader wakes it.
  let isAsleep = Atomic<Bool>(false)
  /// The reader has no spare, as that has become the reader.
  let isAlone = Atomic<Bool>(false)
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
      if limit > 1 { startSpare(&state) }
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

  private func startSpare(_ state: inout State) {
    let spare = Worker()
    setSpare(start(spare, &state) ? spare : nil, &state)
  }

  private func setSpare(_ spare: Worker?, _ state: inout State) {
    state.spare = spare
    state.alone = nil
    isAlone.store(false, ordering: .relaxed)
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
      } else if watchReader(worker) {
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
        if state.spare == nil {
          setSpare(worker, &state)
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
      if isAlone.load(ordering: .relaxed) { replaceSpare() }
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
  /// The reader, in the middle of a request that is about to wait, has the spare read in its place. Returns false where there is none, or the calling
  /// thread is not the reader.
  func handOver() -> Bool {
    let isDone = state.withLock { state -> Bool in
      guard !state.isDone, let reader = state.reader, let spare = state.spare, reader.isCurrent else {
        return false
      }
      reader.isReader.store(false, ordering: .releasing)
      spare.isReader.store(true, ordering: .releasing)
      setSpare(nil, &state)
      (state.reader, state.alone) = (spare, .now)
      isAlone.store(true, ordering: .relaxed)
      return true
    }
    guard isDone else { return false }
    isAsleep.store(false, ordering: .sequentiallyConsistent)
    spareWakes.signal()
    return true
  }

  /// The one that has handed over is still held up: the reader gets another spare.
  private func replaceSpare() {
    state.withLock { state in
      guard let alone = state.alone, alone + Self.patienceWithHandedOver < .now else { return }
      if state.count < limit { startSpare(&state) }
    }
  }

  /// Watches the reader while it works; true when it is held up, false when all is over, or this thread has become the reader.
  private func watchReader(_ worker: Worker) -> Bool {
    var last = readerTurn
    var quiet = 0
    while !state.withLock({ $0.isDone }) {
      var wasWoken = false
      if quiet < Self.quietLooks {
        wasWoken = spareWakes.wait(timeout: .now() + Self.patience) == .success
      } else {
        sleep(since: last)
        quiet = 0
      }
      if worker.isReader.load(ordering: .acquiring) { return false }
      // Less time has passed.
      if wasWoken { continue }
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
      // The reader has handed over just now.
      guard state.reader !== worker else { return }
      state.reader?.isReader.store(false, ordering: .releasing)
      worker.isReader.store(true, ordering: .releasing)
      state.reader = worker
      setSpare(nil, &state)
      if state.count < limit { startSpare(&state) }
    }
  }
}
