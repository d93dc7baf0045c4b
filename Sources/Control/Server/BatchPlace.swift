import Synchronization

/// The batch that a mount's process has under way: one at a time.
final class BatchPlace: Sendable {
  private let state = Mutex((isTaken: false, waiting: [@Sendable () -> Void]()))

  /// False: there is another one.
  func take() -> Bool {
    state.withLock { state in
      defer { state.isTaken = true }
      return !state.isTaken
    }
  }

  func leave() {
    let waiting = state.withLock { state in
      defer { state = (false, []) }
      return state.waiting
    }
    for done in waiting { done() }
  }

  /// Calls `done` when there is none; now, if that is so.
  func whenFree(_ done: @escaping @Sendable () -> Void) {
    let isFree = state.withLock { state in
      if state.isTaken { state.waiting.append(done) }
      return !state.isTaken
    }
    if isFree { done() }
  }
}
