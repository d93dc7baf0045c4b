public import Model
import Synchronization

/// Where the changes of a store come out, for everyone who asks.
///
/// The store calls nobody: it puts values here, outside its locks, and whoever cares iterates a stream.
public final class ChangeFeed: Sendable {
  private struct State {
    var next = 0
    var listeners: [Int: AsyncStream<Change>.Continuation] = [:]
  }

  private let state = Mutex(State())

  public init() {}

  /// Every change from now on, in order.
  public func watch() -> AsyncStream<Change> {
    let (stream, continuation) = AsyncStream<Change>.makeStream()
    let number = state.withLock { state in
      state.next += 1
      state.listeners[state.next] = continuation
      return state.next
    }
    continuation.onTermination = { [weak self] _ in
      _ = self?.state.withLock { $0.listeners.removeValue(forKey: number) }
    }
    return stream
  }

  func publish(_ changes: [Change]) {
    guard !changes.isEmpty else { return }
    let listeners = state.withLock { Array($0.listeners.values) }
    for change in changes {
      for listener in listeners { listener.yield(change) }
    }
  }
}
