import Model
import Platform
import Synchronization

/// Passes the reports of the cluster on to the stores of a mount. A report before `follow` is not lost: the stores read everything after
/// that.
final class ClusterNews: Sendable {
  private struct Listeners: Sendable {
    var suite: @Sendable (ExactString) -> Void = { _ in }
    var items: @Sendable () -> Void = {}
    var opened: @Sendable () -> Void = {}
  }

  private let listeners = Mutex(Listeners())
  private let turns = SerialTurns()
  private let isWaiting = Atomic(false)
  private let unlocked: @Sendable () -> Void

  /// `unlocked` is called before the listeners after this device was unlocked.
  init(_ unlocked: @escaping @Sendable () -> Void) { self.unlocked = unlocked }

  func follow(
    suite: @escaping @Sendable (ExactString) -> Void, items: @escaping @Sendable () -> Void,
    opened: @escaping @Sendable () -> Void
  ) {
    listeners.withLock { $0 = Listeners(suite: suite, items: items, opened: opened) }
  }

  /// On a thread that may wait.
  func tell(_ suite: ExactString) { listeners.withLock { $0.suite }(suite) }

  /// On the thread of the watch. Many changes make one call.
  func tellItems() {
    guard !isWaiting.exchange(true, ordering: .acquiringAndReleasing) else { return }
    let isTaken = turns.run { [self] in
      isWaiting.store(false, ordering: .releasing)
      listeners.withLock { $0.items }()
    }
    if !isTaken { isWaiting.store(false, ordering: .releasing) }
  }

  func tellOpened() {
    let opened = listeners.withLock { $0.opened }
    Background.run { [unlocked] in
      unlocked()
      opened()
    }
  }
}
