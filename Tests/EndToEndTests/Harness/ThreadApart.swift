import Dispatch
import Synchronization

/// A thread with a table of descriptors of its own, for what starts programs while the test has files of a mount open: a program begins
/// with copies of the descriptors of the thread that starts it, and for Keyhole each close of a copy is one that commits.
///
/// Made before such a file is open. Its work must not use descriptors that other threads have opened since.
final class ThreadApart: Sendable {
  private final class Jobs: Sendable {
    private let list = Mutex<[@Sendable () -> Void]>([])
    private let waiting = DispatchSemaphore(value: 0)

    func add(_ job: @escaping @Sendable () -> Void) {
      list.withLock { $0.append(job) }
      waiting.signal()
    }

    /// nil: the thread is to end.
    func take() -> (@Sendable () -> Void)? {
      waiting.wait()
      return list.withLock { $0.isEmpty ? nil : $0.removeFirst() }
    }

    func end() { waiting.signal() }
  }

  private let jobs = Jobs()

  init() {
    let (jobs, started) = (jobs, DispatchSemaphore(value: 0))
    _ = Thread {
      System.separateDescriptors()
      started.signal()
      while let job = jobs.take() { job() }
    }
    started.wait()
  }

  deinit { jobs.end() }

  func run<Success: Sendable>(_ body: @escaping @Sendable () throws -> Success) throws -> Success {
    let done = DispatchSemaphore(value: 0)
    let result = Mutex<Result<Success, any Error>?>(nil)
    jobs.add {
      let value = Result { try body() }
      result.withLock { $0 = value }
      done.signal()
    }
    done.wait()
    guard let result = result.withLock({ $0 }) else { throw Errno.io }
    return try result.get()
  }
}
