import Dispatch
import Synchronization

/// Ends a call before its deadline: at a moment that is given before, or when it is called. Any thread may use it; one value is for one call.
package final class CallInterruption: Sendable {
  private struct State {
    var isInterrupted = false
    var wake: (@Sendable () -> Void)?
  }

  private let state = Mutex(State())

  /// The end of the call, where that is before the cluster's deadline; nil: it is not.
  let end: ContinuousClock.Instant?

  package init(until end: ContinuousClock.Instant? = nil) { self.end = end }

  /// The call returns at once: with `unavailable`, or with `outcomeUnknown` where a change was sent. A call that has not begun ends
  /// when it begins.
  package func interrupt() {
    let wake = state.withLock { state in
      state.isInterrupted = true
      return state.wake
    }
    wake?()
  }

  package var isInterrupted: Bool { state.withLock { $0.isInterrupted } }

  /// Waits for so long. True: the call was interrupted meanwhile.
  func wait(_ duration: Duration) -> Bool {
    let semaphore = DispatchSemaphore(value: 0)
    return waking({ _ = semaphore.signal() }) {
      if isInterrupted { return true }
      _ = semaphore.wait(timeout: .now() + .nanoseconds(Int(max(0, duration / .nanoseconds(1)))))
      return isInterrupted
    }
  }

  /// Calls `body`, and meanwhile `wake` at each interruption, which must not block.
  func waking<Result>(_ wake: @escaping @Sendable () -> Void, _ body: () -> Result) -> Result {
    state.withLock { $0.wake = wake }
    defer { state.withLock { $0.wake = nil } }
    return body()
  }
}
