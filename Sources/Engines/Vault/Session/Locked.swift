import Synchronization

/// A value that one thread uses at a time.
///
/// A `Mutex` would ask that what its body captures can leave the caller's isolation; `update`'s body can't.
final class Locked<Value> {
  private let value: Value
  private let mutex = Mutex(())

  init(_ value: Value) {
    self.value = value
  }

  func use<Result: ~Copyable, Failure: Error>(
    _ body: (Value) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    mutex._unsafeLock()
    defer { mutex._unsafeUnlock() }
    return try body(value)
  }
}

// `value` is only ever used while `mutex` is held.
extension Locked: @unchecked Sendable {}
