import Dispatch
import Synchronization

/// Something that happens some times, and that a test waits for with a deadline in place of sleeping.
final class Event: Sendable {
  private let semaphore = DispatchSemaphore(value: 0)

  func happen() {
    semaphore.signal()
  }

  /// False if it has not happened within ten seconds.
  func wait(times: Int = 1) -> Bool {
    let deadline = DispatchTime.now() + .seconds(10)
    return (0..<times).allSatisfy { _ in wait(until: deadline) }
  }

  func wait(until deadline: DispatchTime) -> Bool {
    semaphore.wait(timeout: deadline) == .success
  }
}

/// A value that another thread will leave.
final class Outcome<Value: Sendable>: Sendable {
  private let place = Mutex<Value?>(nil)
  private let arrived = Event()

  func leave(_ value: Value) {
    place.withLock { $0 = value }
    arrived.happen()
  }

  /// Nil if none has come within ten seconds.
  func take() -> Value? {
    arrived.wait() ? place.withLock { $0 } : nil
  }
}
