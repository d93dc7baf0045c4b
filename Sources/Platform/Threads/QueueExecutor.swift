package import Dispatch

/// Runs an actor on a dispatch queue, so that a plain thread can enter it without `await`.
///
/// A FUSE worker or a property wrapper's getter can't suspend. Entering costs 0.3 µs where no other thread is
/// inside; a task would cost 4 µs, and a FUSE request that hops to one 10 to 20 µs.
package final class QueueExecutor: SerialExecutor {
  @usableFromInline let queue: DispatchQueue

  package init(label: String) {
    queue = DispatchQueue(label: label)
  }

  package func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    queue.async { unsafe job.runSynchronously(on: self.asUnownedSerialExecutor()) }
  }

  /// For `unownedExecutor` of an actor, which keeps this object alive.
  @safe package func asUnownedSerialExecutor() -> UnownedSerialExecutor {
    unsafe UnownedSerialExecutor(ordinary: self)
  }

  package func checkIsolated() {
    dispatchPrecondition(condition: .onQueue(queue))
  }

  /// Runs `body` on the queue and returns what it returns; inside, the actor's `assumeIsolated` holds.
  /// Never call it from the queue itself.
  @inlinable package func run<Value: ~Copyable, Failure: Error>(
    _ body: () throws(Failure) -> Value
  ) throws(Failure) -> Value {
    var result: Result<Value, Failure>?
    queue.sync { result = Result(catching: body) }
    guard let result = result.take() else { preconditionFailure("the queue ran nothing") }
    return try result.get()
  }
}
