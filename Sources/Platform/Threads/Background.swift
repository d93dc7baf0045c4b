package import Dispatch

/// Work beside the caller, as much at once as there is, on threads that Dispatch lends.
///
/// Each piece has a queue of its own. The global queues and concurrent ones would do as well, but with the first
/// use of those libdispatch looks once a second, for as long as the process lives, whether they need more threads.
package enum Background {
  /// Runs `work` on another thread and returns at once. Nothing limits how many run at a time.
  package static func run(_ work: @escaping @Sendable () -> Void) {
    queue.async(execute: work)
  }

  /// Runs `work` on another thread after a delay of CLOCK_MONOTONIC, or later where the machine is busy.
  package static func run(after delay: DispatchTimeInterval, _ work: @escaping @Sendable () -> Void) {
    queue.asyncAfter(deadline: .now() + delay, execute: work)
  }

  /// A queue for one piece of work, or for one source of events.
  package static var queue: DispatchQueue { DispatchQueue(label: "keyhole.background") }

  /// Where tasks run that never block, for the same reason; one after the other.
  package static let tasks: any TaskExecutor = QueueTasks()
}

private final class QueueTasks: TaskExecutor {
  private let queue = DispatchQueue(label: "keyhole.tasks")

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    let executor = unsafe asUnownedTaskExecutor()
    queue.async { unsafe job.runSynchronously(on: executor) }
  }
}
