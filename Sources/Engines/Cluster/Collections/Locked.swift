import Synchronization

/// A value that one thread uses at a time. Its bodies may be the caller's, which a `Mutex` would not take.
final class Locked<Value> {
  private var value: Value
  private let mutex = Mutex(())

  init(_ value: Value) {
    self.value = value
  }

  func use<Result: ~Copyable, Failure: Error>(
    _ body: (inout Value) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    mutex._unsafeLock()
    defer { mutex._unsafeUnlock() }
    return try body(&value)
  }
}

// `value` is only ever used while `mutex` is held.
extension Locked: @unchecked Sendable {}
