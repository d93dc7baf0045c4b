public import Model
import Synchronization

/// Publishes the changes of a store to any number of streams.
///
/// The store calls no observer: it puts values here, outside its locks, and observers iterate a stream.
public final class ChangeFeed: Sendable {
  private struct WeakListener {
    weak var listener: Listener?
  }

  private let listeners = Mutex<[WeakListener]>([])

  /// A feed without streams.
  public init() {}

  /// Every change from now on, in order.
  ///
  /// At most `limit` wait for a listener that iterates too slowly: then an `overflow` takes the place of them all.
  public func watch(limit: Int = 10_000) -> AsyncStream<Change> {
    let listener = Listener(limit: limit)
    listeners.withLock { listeners in
      listeners.removeAll { $0.listener == nil }
      listeners.append(WeakListener(listener: listener))
    }
    return AsyncStream(unfolding: { await listener.next() }, onCancel: { listener.finish() })
  }

  func publish(_ changes: [Change]) {
    guard !changes.isEmpty else { return }
    for listener in listeners.withLock({ $0.compactMap(\.listener) }) { listener.hear(changes) }
  }
}

/// The values that were published and not yet taken. It lives as long as the stream that takes it.
private final class Listener: Sendable {
  fileprivate struct State {
    /// The next one last.
    var waiting: [Change] = []
    var heard: [Change] = []
    var taker: CheckedContinuation<Change?, Never>?
    var isFinished = false
  }

  private let limit: Int
  private let state = Mutex(State())

  init(limit: Int) {
    self.limit = limit
  }

  func hear(_ changes: [Change]) {
    let taken: (CheckedContinuation<Change?, Never>, Change?)? = state.withLock { state in
      state.heard += changes
      if state.heard.count + state.waiting.count > limit {
        state.waiting = []
        state.heard = [Change(.overflow, .everything, origin: .external)]
      }
      return state.taker.take().map { ($0, state.next()) }
    }
    if let (taker, change) = taken { taker.resume(returning: change) }
  }

  func next() async -> Change? {
    await withCheckedContinuation { continuation in
      let ready: Change?? = state.withLock { state in
        if let change = state.next() { return .some(change) }
        if state.isFinished { return .some(nil) }
        state.taker = continuation
        return .none
      }
      if let change = ready { continuation.resume(returning: change) }
    }
  }

  func finish() {
    let taker = state.withLock { state in
      state.isFinished = true
      return state.taker.take()
    }
    taker?.resume(returning: nil)
  }
}

extension Listener.State {
  fileprivate mutating func next() -> Change? {
    if waiting.isEmpty {
      waiting = heard.reversed()
      heard = []
    }
    return waiting.popLast()
  }
}
