import Synchronization

/// A value that one thread uses at a time.
///
/// A `Mutex` would ask that what its body captures and returns can leave the caller's isolation; the values of
/// wrappers need not be `Sendable`.
package final class Guarded<State>: @unchecked Sendable {
  // `state` is only ever used while `mutex` is held.
  private var state: State
  private let mutex = Mutex(())

  package init(_ state: State) {
    self.state = state
  }

  package func withLock<Result, Failure: Error>(
    _ body: (inout State) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    mutex._unsafeLock()
    defer { mutex._unsafeUnlock() }
    return try body(&state)
  }
}
