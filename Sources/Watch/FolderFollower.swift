import Dispatch

/// Calls a function with the name of each file in a folder that others change, for as long as it lives.
///
/// nil stands for any file, as in `FolderWatch`.
public final class FolderFollower: Sendable {
  private let task: Task<Void, Never>

  /// - Throws: `FolderWatch.Failure`.
  public init(
    _ folder: String, of kind: FolderWatch.Kind = .anything,
    changed: @escaping @Sendable (String?) -> Void
  ) throws(FolderWatch.Failure) {
    let names = try FolderWatch.names(in: folder, of: kind)
    // Not on the pool of tasks: a program that blocks that one must hear of changes all the same.
    task = Task(executorPreference: QueueTasks.shared) {
      for await name in names { changed(name) }
    }
  }

  deinit { task.cancel() }
}

/// A dispatch queue for tasks.
private final class QueueTasks: TaskExecutor {
  static let shared = QueueTasks()
  private let queue = DispatchQueue(label: "keyhole.changes", qos: .userInitiated)

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    let executor = unsafe asUnownedTaskExecutor()
    queue.async { unsafe job.runSynchronously(on: executor) }
  }
}
