import CSystem
import Glibc

/// A thread of this process, as long as it runs: pthread_self(3).
package struct ThreadID: Hashable, Sendable {
  private let thread: UInt

  /// The calling thread.
  package static var current: ThreadID { ThreadID(thread: UInt(pthread_self())) }

  /// Runs `body` once on a new thread. - Returns: false: there can't be one (pthread_create(3): EAGAIN).
  @discardableResult
  package static func start(_ body: @escaping @Sendable () -> Void) -> Bool {
    let work = unsafe Unmanaged.passRetained(Work(body))
    var thread = pthread_t()
    // SAFETY: the thread takes over the reference; if there is none, it is taken back.
    guard unsafe pthread_create(&thread, nil, { unsafe runWork($0) }, work.toOpaque()) == 0 else {
      unsafe work.release()
      return false
    }
    pthread_detach(thread)
    return true
  }
}

extension ThreadID {
  /// The signal of `interrupt`: a real-time one, which no other code in the process is likely to use.
  private static let wakeSignal = __libc_current_sigrtmax() - 3

  private static let wakeHandler: Void = {
    var action = sigaction()
    unsafe action.__sigaction_handler.sa_handler = { _ in }
    // Without SA_RESTART: the call has to end.
    action.sa_flags = 0
    // SAFETY: the handler does nothing, so nothing in it is unsafe at any moment.
    unsafe sigaction(wakeSignal, &action, nil)
  }()

  /// Blocks all signals of the calling thread but those of faults and the one of `interrupt`: the others are for the main
  /// thread. pthread_sigmask(3).
  package static func blockSignals() {
    wakeHandler
    var set = sigset_t()
    unsafe sigfillset(&set)
    for signal in [SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGABRT, SIGSYS, wakeSignal] {
      unsafe sigdelset(&set, signal)
    }
    unsafe pthread_sigmask(SIG_SETMASK, &set, nil)
  }

  /// Ends the system call in which the thread waits with EINTR, after it called `blockSignals`: pthread_kill(3).
  ///
  /// Lost where the call has not begun yet. The thread has to be there.
  package func interrupt() {
    pthread_kill(pthread_t(thread), Self.wakeSignal)
  }
}

private final class Work: Sendable {
  let body: @Sendable () -> Void

  init(_ body: @escaping @Sendable () -> Void) {
    self.body = body
  }
}

private func runWork(_ work: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
  if let work = unsafe work { unsafe Unmanaged<Work>.fromOpaque(work).takeRetainedValue().body() }
  return nil
}
