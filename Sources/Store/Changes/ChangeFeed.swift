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
  private let record: LocalChanges?

  /// A feed without streams.
  public init() { record = nil }

  /// The same; what this process changes is noted in `record` as well.
  package init(notingIn record: LocalChanges) { self.record = record }

  /// Every change from now on, in order.
  ///
  /// At most `limit` wait for a listener that iterates too slowly: then an `overflow` takes the place of them all.
  public func watch(limit: Int = 10_000) -> AsyncStream<Change> { follow(limit: limit).changes }

  /// The same, with the progress of the one that iterates the stream.
  package func follow(limit: Int) -> (changes: AsyncStream<Change>, progress: ChangeProgress) {
    let listener = Listener(limit: limit)
    listeners.withLock { listeners in
      listeners.removeAll { $0.listener == nil }
      listeners.append(WeakListener(listener: listener))
    }
    let changes = AsyncStream(unfolding: { await listener.next() }, onCancel: { listener.finish() })
    return (changes, ChangeProgress(listener))
  }

  func publish(_ changes: [Change]) {
    guard !changes.isEmpty else { return }
    record?.note(changes)
    for listener in listeners.withLock({ $0.compactMap(\.listener) }) { listener.hear(changes) }
  }
}

/// How far the one that iterates a stream of changes has come.
package struct ChangeProgress: Sendable {
  private weak let listener: Listener?

  fileprivate init(_ listener: Listener) { self.listener = listener }

  /// Calls `body` when every change that was published until now has been handled: the next one is asked for. At once where the stream has
  /// ended.
  package func whenHandled(_ body: @escaping @Sendable () -> Void) {
    guard let listener else { return body() }
    listener.whenHandled(body)
  }
}

/// The values that were published and not yet taken. It lives as long as the stream that takes it.
private final class Listener: Sendable {
  fileprivate struct State {
    /// How many changes were published, and how many of them were taken.
    var published = 0
    var taken = 0
    /// Those that wait until so many were handled.
    var waiters: [(count: Int, body: @Sendable () -> Void)] = []
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
      state.published += changes.count
      if state.heard.count + state.waiting.count > limit {
        state.waiting = []
        // It stands for all of them.
        state.taken = state.published - 1
        for index in state.waiters.indices { state.waiters[index].count = state.published }
        state.heard = [Change(.overflow, .everything, origin: .external)]
      }
      return state.taker.take().map { ($0, state.next()) }
    }
    if let (taker, change) = taken { taker.resume(returning: change) }
  }

  func whenHandled(_ body: @escaping @Sendable () -> Void) {
    let isHandled = state.withLock { state in
      // One that was taken is being handled until the next one is asked for.
      if state.isFinished || state.taken == state.published && state.taker != nil { return true }
      state.waiters.append((state.published, body))
      return false
    }
    if isHandled { body() }
  }

  func next() async -> Change? {
    let handled = state.withLock { state in
      let (taken, waiters) = (state.taken, state.waiters)
      state.waiters = waiters.filter { $0.count > taken }
      return waiters.filter { $0.count <= taken }
    }
    for waiter in handled { waiter.body() }
    return await take()
  }

  private func take() async -> Change? {
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
    let (taker, waiters) = state.withLock { state in
      state.isFinished = true
      defer { state.waiters = [] }
      return (state.taker.take(), state.waiters)
    }
    taker?.resume(returning: nil)
    for waiter in waiters { waiter.body() }
  }

  deinit {
    for waiter in state.withLock({ $0.waiters }) { waiter.body() }
  }
}

extension Listener.State {
  fileprivate mutating func next() -> Change? {
    if waiting.isEmpty {
      waiting = heard.reversed()
      heard = []
    }
    let change = waiting.popLast()
    if change != nil { taken += 1 }
    return change
  }
}
