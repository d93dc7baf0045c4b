internal import CSecret
import Model
import Platform
import Synchronization

/// GLib's main loop on a thread of its own, as the executor of an actor: whatever touches D-Bus runs here.
///
/// @unchecked: the context is made for use by several threads, and nothing else is stored but a lock.
@safe final class MainLoop: SerialExecutor, TaskExecutor, @unchecked Sendable {
  private let context: OpaquePointer
  private let threads = WaitingThreads()
  private let isStopped = Atomic<Bool>(false)

  /// - Throws: `unreachable` without libsecret.
  init() throws(StoreError) {
    // All calls of GLib follow this one.
    try SecretLibrary.load()
    unsafe context = g_main_context_new()
  }

  deinit {
    unsafe g_main_context_unref(context)
  }

  /// Begins to run what is enqueued; false where there can be no thread.
  func start() -> Bool {
    threads.run { [self] in run() }
  }

  /// Ends the thread, when what is enqueued already has run.
  func stop() {
    invoke { [self] in isStopped.store(true, ordering: .relaxed) }
  }

  private func run() {
    unsafe g_main_context_push_thread_default(context)
    while !isStopped.load(ordering: .relaxed) { unsafe g_main_context_iteration(context, 1) }
    unsafe g_main_context_pop_thread_default(context)
  }

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    invoke { [self] in
      unsafe job.runSynchronously(
        isolatedTo: asUnownedSerialExecutor(), taskExecutor: asUnownedTaskExecutor())
    }
  }

  /// Safe to call: an actor keeps its executor as long as itself.
  @safe func asUnownedSerialExecutor() -> UnownedSerialExecutor {
    unsafe UnownedSerialExecutor(ordinary: self)
  }

  func checkIsolated() {
    unsafe precondition(g_main_context_is_owner(context) != 0)
  }

  /// Has `body` run on the loop's thread, in the order of the calls.
  func invoke(_ body: @escaping @Sendable () -> Void) {
    unsafe schedule(g_idle_source_new(), body)
  }

  /// Has `body` run on the loop's thread after some milliseconds.
  func invoke(after milliseconds: Int, _ body: @escaping @Sendable () -> Void) {
    unsafe schedule(g_timeout_source_new(guint(max(milliseconds, 0))), body)
  }

  private func schedule(_ source: UnsafeMutablePointer<GSource>?, _ body: @escaping @Sendable () -> Void) {
    guard let source = unsafe source else { return }
    let work = unsafe Unmanaged.passRetained(Work(body))
    // An idle source would wait until nothing else is to be done.
    unsafe g_source_set_priority(source, G_PRIORITY_DEFAULT)
    unsafe g_source_set_callback(
      source,
      { data in
        guard let data = unsafe data else { return 0 }
        unsafe Unmanaged<Work>.fromOpaque(data).takeUnretainedValue().body()
        return 0
      }, work.toOpaque(),
      { data in if let data = unsafe data { unsafe Unmanaged<Work>.fromOpaque(data).release() } })
    unsafe g_source_attach(source, context)
    unsafe g_source_unref(source)
  }
}

private final class Work: Sendable {
  let body: @Sendable () -> Void

  init(_ body: @escaping @Sendable () -> Void) {
    self.body = body
  }
}
