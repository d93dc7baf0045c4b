import Dispatch
import Platform
import Synchronization

/// A thread that waits for a bus and for jobs, as the executor of an actor: whatever touches the bus runs here.
///
/// It uses no processor time while neither comes.
package final class BusLoop: SerialExecutor, TaskExecutor {
  /// A connection that the loop serves.
  protocol Source: AnyObject {
    /// Its descriptor, and the events that it waits for.
    var entry: Poll.Entry { get }
    /// nil: it waits for nothing by itself.
    var deadline: ContinuousClock.Instant? { get }
    /// Takes one message, or sends some. False: there was nothing to do.
    func process() -> Bool
  }

  private struct State {
    var jobs: [UnownedJob] = []
    var isEnded = false
    var thread: ThreadID?
  }

  private let wakePipe: WakePipe
  private let state = Mutex(State())
  /// Used on the loop's thread only.
  private let source = LoopBox<any Source>()
  private let turn = LoopBox<() -> Bool>()
  private let threads = WaitingThreads()

  /// So many messages at most are taken before one is answered, and jobs have their turn.
  private static let mostAtOnce = 256

  /// - Throws: `BusFailure` without a descriptor.
  package init() throws(BusFailure) {
    do throws(Errno) { wakePipe = try WakePipe() } catch {
      throw BusFailure(reason: "there is no descriptor for its thread (\(error))")
    }
  }

  /// Begins to run what is enqueued; false where there can be no thread.
  package func start() -> Bool {
    threads.run { [self] in run() }
  }

  /// Ends the thread, when what is enqueued already has run.
  package func stop() {
    state.withLock { $0.isEnded = true }
    wakePipe.wake()
  }

  /// From the loop's thread only; nil: none.
  func serve(_ source: (any Source)?) { self.source.value = source }

  /// From the loop's thread only: `turn` is called each time when the messages that had come are taken, or many of them. False: there
  /// was nothing to do.
  package func whenRead(_ turn: (() -> Bool)?) { self.turn.value = turn }

  private func run() {
    let isFirst = state.withLock { state in
      defer { state.thread = .current }
      return state.thread == nil
    }
    guard isFirst else { return }
    while true {
      let didRun = runJobs()
      var didProcess = false
      for _ in 0..<Self.mostAtOnce {
        guard source.value?.process() == true else { break }
        didProcess = true
      }
      let didAnswer = turn.value?() == true
      if didRun || didProcess || didAnswer { continue }
      if state.withLock({ $0.isEnded && $0.jobs.isEmpty }) { return }
      wait()
    }
  }

  private func runJobs() -> Bool {
    let jobs = state.withLock { state in
      defer { state.jobs = [] }
      return state.jobs
    }
    for job in jobs {
      unsafe job.runSynchronously(
        isolatedTo: asUnownedSerialExecutor(), taskExecutor: asUnownedTaskExecutor())
    }
    return !jobs.isEmpty
  }

  private func wait() {
    let entries = [Poll.Entry(wakePipe.readEnd)] + (source.value.map { [$0.entry] } ?? [])
    guard let ready = try? Poll.wait(for: entries, until: source.value?.deadline) else { return }
    if ready[0] { wakePipe.clear() }
  }

  package func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    let current = ThreadID.current
    let isOwn = state.withLock { state in
      state.jobs.append(job)
      return state.thread == current
    }
    if !isOwn { wakePipe.wake() }
  }

  /// Safe to call: an actor keeps its executor as long as itself.
  @safe package func asUnownedSerialExecutor() -> UnownedSerialExecutor {
    unsafe UnownedSerialExecutor(ordinary: self)
  }

  package func checkIsolated() {
    precondition(state.withLock { $0.thread } == .current)
  }
}

/// @unchecked: the loop's thread alone uses it.
private final class LoopBox<Value>: @unchecked Sendable {
  var value: Value?
}
