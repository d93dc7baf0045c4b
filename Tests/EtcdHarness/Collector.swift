import Dispatch
import Platform
import Synchronization

/// Values that other threads report, for a test that waits for some of them.
public final class Collector<Value: Sendable>: Sendable {
  private let values = Mutex<[Value]>([])
  private let arrived = DispatchSemaphore(value: 0)

  public init() {}

  public func add(_ value: Value) {
    values.withLock { $0.append(value) }
    arrived.signal()
  }

  public var all: [Value] { values.withLock { $0 } }

  /// Waits until the values are as they should be. False: they are not within that time.
  public func wait(_ limit: Duration = .seconds(20), for isDone: ([Value]) -> Bool) -> Bool {
    let deadline = ContinuousClock.now + limit
    while !isDone(all) {
      let left = ContinuousClock.now.duration(to: deadline) / .milliseconds(1)
      guard left > 0 else { return false }
      _ = arrived.wait(timeout: .now() + .milliseconds(Int(left) + 1))
    }
    return true
  }
}

/// Runs work on as many threads of their own, and returns when all are done.
public func onThreads(_ count: Int, _ body: @escaping @Sendable (Int) -> Void) {
  let threads = WaitingThreads()
  for index in 0..<count where !threads.run({ body(index) }) { body(index) }
  threads.finish()
}
