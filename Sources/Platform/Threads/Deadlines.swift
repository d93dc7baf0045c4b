import Dispatch
import Synchronization

/// Calls closures at their time, on a thread of its own that lives while there are some.
///
/// Not a timer of Dispatch: it has few threads, and when they all wait for something, no timer of it fires.
package final class Deadlines: Sendable {
  private struct Entry: Sendable {
    let time: ContinuousClock.Instant
    let action: @Sendable () -> Void
  }

  private struct State: Sendable {
    /// By time, the next one last.
    var entries: [Entry] = []
    var isRunning = false
  }

  private let threads = WaitingThreads()
  private let state = Mutex(State())
  private let wake = DispatchSemaphore(value: 0)

  package init() {}

  /// Calls `action` once after `delay`. It must not block: other actions wait for it.
  package func run(after delay: Duration, _ action: @escaping @Sendable () -> Void) {
    let entry = Entry(time: .now + delay, action: action)
    let isFirst = state.withLock { state in
      let index = state.entries.firstIndex { $0.time <= entry.time } ?? state.entries.endIndex
      state.entries.insert(entry, at: index)
      defer { state.isRunning = true }
      return !state.isRunning
    }
    guard isFirst else { return _ = wake.signal() }
    // The thread keeps this object.
    if !threads.run({ self.serve() }) { Background.run { self.serve() } }
  }

  private func serve() {
    while let next = takeDue() {
      let left = ContinuousClock.now.duration(to: next)
      _ = wake.wait(timeout: .now() + .milliseconds(Int(max(0, (left / .milliseconds(1)).rounded(.up)))))
    }
  }

  /// Calls what is due, and returns when the next one is; nil: there is none, and the thread ends.
  private func takeDue() -> ContinuousClock.Instant? {
    while true {
      let (entry, next) = state.withLock { state -> (Entry?, ContinuousClock.Instant?) in
        guard let last = state.entries.last else {
          state.isRunning = false
          return (nil, nil)
        }
        return last.time <= .now ? (state.entries.popLast(), nil) : (nil, last.time)
      }
      guard let entry else { return next }
      entry.action()
    }
  }
}
