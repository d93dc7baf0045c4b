import CFuse
import Glibc
import Synchronization

extension Session {
  /// Answers the kernel until the mount is gone or ``exit()`` is called.
  ///
  /// Blocks the calling thread, which itself answers nothing. Up to `threads` others do, started as they are needed, and
  /// kept: an idle one costs some 20 KiB. Requests that wait hold no thread, so a few are enough. In libfuse:
  /// `fuse_session_loop_mt`.
  public func run(threads: Int = 4) throws(SessionError) {
    guard let session = unsafe connection.session, begin() else {
      throw SessionError(.run, messages: [], errno: .EBUSY)
    }
    defer { end() }
    let count = UInt32(clamping: max(threads, 1))
    // One descriptor for all threads: with clones the kernel hangs up only when the last owed reply is gone.
    // SAFETY: the connection keeps the session alive.
    let (status, messages) = Log.capture { unsafe shim_session_loop(session, count, count, 0) }
    guard status < 0, !isExiting else { return }
    throw SessionError(.run, messages: messages, errno: Errno(rawValue: -status))
  }

  /// Has ``run(threads:)`` return soon, with the mount still there.
  ///
  /// Returns at once, from any thread, also inside a request. In libfuse: `fuse_session_exit`.
  public func exit() {
    guard let session = unsafe connection.session else { return }
    // SAFETY: the connection keeps the session alive.
    unsafe fuse_session_exit(session)
    let isFirst = state.withLock { state in
      defer { state.isExiting = true }
      return !state.isExiting && state.runner != nil
    }
    guard isFirst else { return }
    startThread { [self] in wakeRunner() }
  }
}

extension Session {
  private var isExiting: Bool { state.withLock { $0.isExiting } }

  private func begin() -> Bool {
    WakeSignal.unblock()
    return state.withLock { state in
      guard state.runner == nil, !state.isExiting else { return false }
      state.runner = pthread_self()
      return true
    }
  }

  private func end() {
    state.withLock { $0.runner = nil }
  }

  /// Signals the runner until it has left the loop: a signal that comes just before its wait is lost.
  private func wakeRunner() {
    let pause = timespec(tv_sec: 0, tv_nsec: 2_000_000)
    while signalRunner() {
      _ = unsafe withUnsafePointer(to: pause) { unsafe nanosleep($0, nil) }
    }
  }

  private func signalRunner() -> Bool {
    // Under the lock, so that the thread is still there.
    state.withLock { state in
      guard let runner = state.runner else { return false }
      return pthread_kill(runner, WakeSignal.number) == 0
    }
  }
}
