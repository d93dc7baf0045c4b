import Dispatch
import Synchronization

/// Threads for what may have to wait for another process, one for each call.
///
/// Not Dispatch's: it has few, and when they all wait, nothing else that is queued runs.
package final class WaitingThreads: Sendable {
  /// Beyond that, callers are refused: they pile up only where something hangs.
  package static let limit = 256

  private let count = Atomic<Int>(0)
  private let running = DispatchGroup()

  /// Begins without a thread.
  package init() {}

  /// Runs `work` on a thread of its own; false: there are too many already.
  package func run(_ work: @escaping @Sendable () -> Void) -> Bool {
    let isTaken = count.add(1, ordering: .relaxed).newValue <= Self.limit && start(work)
    if !isTaken { count.subtract(1, ordering: .relaxed) }
    return isTaken
  }

  /// Returns when all are done.
  package func finish() {
    running.wait()
  }

  private func start(_ work: @escaping @Sendable () -> Void) -> Bool {
    running.enter()
    let isStarted = ThreadID.start { [self] in
      work()
      count.subtract(1, ordering: .relaxed)
      running.leave()
    }
    if !isStarted { running.leave() }
    return isStarted
  }
}
