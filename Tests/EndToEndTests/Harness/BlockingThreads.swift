import Dispatch

/// Threads that may block in a system call, for the tests' own tasks.
///
/// Swift's pool has one thread a core: a few tests that wait for a file system would hold all of them, and the
/// time limits that are to end such a test could not run any more.
final class BlockingThreads: TaskExecutor {
  static let shared = BlockingThreads()

  private let queue = DispatchQueue(label: "BlockingThreads", attributes: .concurrent)

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    let executor = unsafe asUnownedTaskExecutor()
    queue.async { unsafe job.runSynchronously(on: executor) }
  }
}
