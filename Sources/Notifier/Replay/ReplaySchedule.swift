public import Dispatch
import Synchronization

/// Has the replays of its queue performed, one at a time.
///
/// Each uses the mount, which then can't be unmounted: ``pause(_:)`` stops them for that long.
public final class ReplaySchedule<Target: ReplayTarget>: Sendable {
  /// Whether a replay is still due, and when: where it is, `start` is called once, on the schedule's queue.
  public typealias Condition =
    @Sendable (_ replay: Replay<Target>, _ start: @escaping @Sendable () -> Void) -> Bool

  fileprivate struct State {
    var waiting = ReplayQueue<Target>()
    /// The one that is being performed, or about to be.
    var current: Replay<Target>?
    var performer: (any ReplayPerformer)?
    /// Whether the next one is being chosen or performed.
    var isRunning = false
    var pauses = 0
    /// Called when the present one is over.
    var onPaused: [@Sendable () -> Void] = []
  }

  private let state = Mutex(State())
  /// Whether there is a current one: most requests ask when there is none, without the lock.
  private let isPerforming = Atomic(false)
  private let queue: DispatchQueue
  private let isDue: Condition

  /// `queue`: a serial one. What is on it before a replay is added is done before the replay.
  public init(on queue: DispatchQueue, _ isDue: @escaping Condition) {
    self.queue = queue
    self.isDue = isDue
  }

  /// From now on replays are performed by `performer`; before, they are dropped.
  public func start(_ performer: any ReplayPerformer) {
    state.withLock { $0.performer = performer }
  }

  /// Adds replays in the order of their changes.
  public func add(_ replays: [Replay<Target>]) {
    let begins = state.withLock { state in
      guard state.performer != nil, !replays.isEmpty else { return false }
      for replay in replays { state.waiting.add(replay) }
      return state.begins()
    }
    if begins { queue.async { self.performNext() } }
  }

  /// Performs none until ``resume()``. Calls `body` once when none is being performed any more.
  public func pause(_ body: @escaping @Sendable () -> Void) {
    let isPaused = state.withLock { state in
      state.pauses += 1
      if state.isRunning { state.onPaused.append(body) }
      return !state.isRunning
    }
    if isPaused { body() }
  }

  /// To be called once for each ``pause(_:)``.
  public func resume() {
    let begins = state.withLock { state in
      state.pauses -= 1
      return state.begins()
    }
    if begins { queue.async { self.performNext() } }
  }

  /// Whether a request of this thread belongs to a replay. Most requests ask, and a replay is large, also where it is nil.
  public func isReplaying(_ thread: Int32) -> Bool {
    guard isPerforming.load(ordering: .acquiring), thread != 0 else { return false }
    return state.withLock { $0.current != nil && $0.performer?.thread == thread }
  }

  /// The replay that a request of this thread belongs to; nil: the thread is not the performer's, or none is being
  /// performed. The kernel gives the number of the thread, so another process can't claim it.
  public func replay(of thread: Int32) -> Replay<Target>? {
    guard isPerforming.load(ordering: .acquiring), thread != 0 else { return nil }
    return state.withLock { state in
      guard let current = state.current, state.performer?.thread == thread else { return nil }
      return current
    }
  }

  private func performNext() {
    while let (replay, performer) = takeNext() {
      let isTaken = isDue(replay) { [self] in
        performer.perform(replay) { [self] in
          state.withLock { $0.current = nil }
          isPerforming.store(false, ordering: .releasing)
          queue.async { self.performNext() }
        }
      }
      if isTaken { return }
    }
  }

  private func takeNext() -> (Replay<Target>, any ReplayPerformer)? {
    let (next, onPaused) = state.withLock { state in
      state.current = state.pauses == 0 ? state.waiting.next() : nil
      isPerforming.store(state.current != nil, ordering: .releasing)
      guard let replay = state.current, let performer = state.performer else {
        state.isRunning = false
        defer { state.onPaused = [] }
        return (nil as (Replay<Target>, any ReplayPerformer)?, state.onPaused)
      }
      return ((replay, performer), [])
    }
    for body in onPaused { body() }
    return next
  }
}

extension ReplaySchedule.State {
  /// Whether the caller has to begin to perform.
  fileprivate mutating func begins() -> Bool {
    guard pauses == 0, !isRunning else { return false }
    isRunning = true
    return true
  }
}
