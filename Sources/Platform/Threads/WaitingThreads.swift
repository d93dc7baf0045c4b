import Dispatch
import Synchronization

/// Threads for what may have to wait for another process, one for each call that runs.
///
/// Not Dispatch's: it has few, and when they all wait, nothing else that is queued runs. A thread stays for a second after its call: to
/// start one takes longer than many calls.
package final class WaitingThreads: Sendable {
  /// Beyond that, callers are refused: they pile up only where something hangs.
  package static let limit = 256
  /// How long a thread without a call stays.
  private static let patience = DispatchTimeInterval.seconds(1)

  private struct State {
    /// Calls that run, or wait for a thread which has none.
    var count = 0
    /// Threads without a call.
    var idle = 0
    /// Calls for threads without one, each with a signal: never more than `idle`.
    var waiting: [@Sendable () -> Void] = []
  }

  private let state = Mutex(State())
  private let more = DispatchSemaphore(value: 0)
  private let running = DispatchGroup()

  /// Begins without a thread.
  package init() {}

  /// Runs `work` on a thread that does nothing else; false: there are too many already.
  package func run(_ work: @escaping @Sendable () -> Void) -> Bool {
    let (isTaken, isGiven) = state.withLock { state in
      guard state.count < Self.limit else { return (false, false) }
      state.count += 1
      running.enter()
      guard state.waiting.count < state.idle else { return (true, false) }
      state.waiting.append(work)
      return (true, true)
    }
    if isGiven { more.signal() }
    guard isTaken, !isGiven else { return isTaken }
    let first = FirstCall(work)
    if ThreadID.start({ [self] in workOff(first) }) { return true }
    end()
    return false
  }

  /// Returns when all are done.
  package func finish() {
    running.wait()
  }

  private func end() {
    state.withLock { $0.count -= 1 }
    running.leave()
  }

  /// A call and what it holds, which may be a secret, are gone before the next one is waited for.
  private func workOff(_ first: FirstCall) {
    var isThere = perform(first.take())
    while isThere { isThere = perform(next()) }
  }

  /// Returns false where there is no call.
  private func perform(_ work: (@Sendable () -> Void)?) -> Bool {
    guard let work else { return false }
    work()
    end()
    return true
  }

  private func next() -> (@Sendable () -> Void)? {
    state.withLock { $0.idle += 1 }
    while more.wait(timeout: .now() + Self.patience) == .timedOut {
      let isOver = state.withLock { state in
        // All threads without a call have one to take: its signal is there, or comes.
        guard state.waiting.count < state.idle else { return false }
        state.idle -= 1
        return true
      }
      if isOver { return nil }
    }
    return state.withLock { state in
      state.idle -= 1
      return state.waiting.isEmpty ? nil : state.waiting.removeFirst()
    }
  }
}

/// The call that a thread is started for. What the thread is started with lives as long as it does.
private final class FirstCall: Sendable {
  private let work: Mutex<(@Sendable () -> Void)?>

  init(_ work: @escaping @Sendable () -> Void) { self.work = Mutex(work) }

  func take() -> (@Sendable () -> Void)? { work.withLock { $0.take() } }
}
