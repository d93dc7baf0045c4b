import Synchronization

/// Work that is done one piece after the other, on a thread of its own that lives while there is some.
///
/// Not one of Dispatch's threads: those are few, and once they all wait, what is queued here would not run.
package final class SerialTurns: Sendable {
  /// So many pieces may wait.
  private static let limit = 64

  private let threads = WaitingThreads()
  private let state = Mutex((isRunning: false, waiting: [@Sendable () -> Void]()))

  /// Begins without a thread.
  package init() {}

  /// False: too many wait, or there is no thread.
  package func run(_ work: @escaping @Sendable () -> Void) -> Bool {
    let (isTaken, isFirst) = state.withLock { state in
      guard state.waiting.count < Self.limit else { return (false, false) }
      state.waiting.append(work)
      defer { state.isRunning = true }
      return (true, !state.isRunning)
    }
    guard isTaken, isFirst else { return isTaken }
    if threads.run({ [self] in workOff() }) { return true }
    state.withLock { $0 = (false, []) }
    return false
  }

  private func workOff() {
    while let work = next() { work() }
  }

  private func next() -> (@Sendable () -> Void)? {
    state.withLock { state in
      guard !state.waiting.isEmpty else {
        state.isRunning = false
        return nil
      }
      return state.waiting.removeFirst()
    }
  }
}
