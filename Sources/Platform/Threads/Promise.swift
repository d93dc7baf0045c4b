import Dispatch
import Synchronization

/// A value that one thread provides and another one waits for.
package final class Promise<Value: Sendable>: Sendable {
  private let value = Mutex<Value?>(nil)
  private let isThere = DispatchSemaphore(value: 0)

  package init() {}

  /// Provides the value. Only the first one counts.
  package func fulfill(_ value: Value) {
    let isFirst = self.value.withLock { present in
      guard present == nil else { return false }
      present = value
      return true
    }
    if isFirst { isThere.signal() }
  }

  /// Waits for the value on this thread. Not for threads that others wait for.
  package func wait() -> Value {
    while true {
      isThere.wait()
      // Another thread that waits is woken by this one.
      isThere.signal()
      if let value = value.withLock({ $0 }) { return value }
    }
  }

  /// The same; nil: the value is not there within that time.
  package func wait(within limit: Duration) -> Value? {
    let milliseconds = min(max(0, limit / .milliseconds(1)), 1e9)
    guard isThere.wait(timeout: .now() + .milliseconds(Int(milliseconds.rounded(.up)))) == .success else {
      return nil
    }
    isThere.signal()
    return value.withLock { $0 }
  }
}

extension Background {
  /// The result of work on another thread; nil: it takes longer. That thread is left alone then.
  package static func result<Value: Sendable>(
    within limit: Duration, _ work: @escaping @Sendable () -> Value
  ) -> Value? {
    let promise = Promise<Value>()
    run { promise.fulfill(work()) }
    return promise.wait(within: limit)
  }
}
