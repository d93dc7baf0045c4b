import Platform
import Synchronization

extension Session {
  /// Answers the kernel until the mount is gone or ``exit()`` is called.
  ///
  /// Blocks the calling thread, which itself answers nothing. One thread does; when a request holds it up for some
  /// milliseconds another takes over, up to `threads` of them. So an operation that blocks now and then does not freeze
  /// the mount, but one that waits for a person must park its reply. Idle, there are two or three threads, all asleep.
  public func run(threads: Int = 8) throws(SessionError) {
    let workers = Workers(connection, limit: threads)
    guard connection.begin(workers) else { throw SessionError(.run, messages: [], errno: .EBUSY) }
    let status = workers.run()
    connection.endWorkers()
    guard status < 0 else { return }
    throw SessionError(.run, messages: [], errno: Errno(rawValue: -status))
  }

  /// Has ``run(threads:)`` return soon, with the mount still there.
  ///
  /// Returns at once, from any thread, also inside a request. In libfuse: `fuse_session_exit`.
  public func exit() {
    connection.exit()
    connection.workers?.wake()
  }
}
