import Dispatch
import Synchronization

/// Work that is done one piece after the other, on a thread of its own that lives while there is some, and a second longer.
///
/// Not one of Dispatch's threads: those are few, and once they all wait, what is queued here would not run.
package final class SerialTurns: Sendable {
  /// So many pieces may wait.
  private static let limit = 64
  /// Pieces that follow each other share a thread.
  private static let patience = DispatchTimeInterval.seconds(1)

  private let threads = WaitingThreads()
  private let state = Mutex(State())
  private let more = DispatchSemaphore(value: 0)

  private struct State {
    var isRunning = false
    /// The thread waits for more.
    var isIdle = false
    var waiting: [@Sendable () -> Void] = []
  }

  /// Begins without a thread.
  package init() {}

  /// False: too many wait, or there is no thread.
  package func run(_ work: @escaping @Sendable () -> Void) -> Bool {
    let (isTaken, isFirst, isIdle) = state.withLock { state in
      guard state.waiting.count < Self.limit else { return (false, false, false) }
      state.waiting.append(work)
      defer { (state.isRunning, state.isIdle) = (true, false) }
      return (true, !state.isRunning, state.isIdle)
    }
    if isIdle { more.signal() }
    guard isTaken, isFirst else { return isTaken }
    if threads.run({ [self] in workOff() }) { return true }
    state.withLock { $0 = State() }
    return false
  }

  private func workOff() {
    while let work = next() { work() }
  }

  private func next() -> (@Sendable () -> Void)? {
    while true {
      if let work = state.withLock({ takeFirst(&$0) }) { return work }
      if more.wait(timeout: .now() + Self.patience) == .success { continue }
      let isOver = state.withLock { state in
        // It was signalled that there is more since the wait was over: the signal is there, or comes.
        guard state.isIdle else { return false }
        (state.isRunning, state.isIdle) = (false, false)
        return true
      }
      if isOver { return nil }
      more.wait()
    }
  }

  private func takeFirst(_ state: inout State) -> (@Sendable () -> Void)? {
    state.isIdle = state.waiting.isEmpty
    return state.waiting.isEmpty ? nil : state.waiting.removeFirst()
  }
}
