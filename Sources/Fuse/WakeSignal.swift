import Glibc

/// A signal that does nothing but end the wait of the thread it is sent to.
///
/// `fuse_session_loop_mt` waits on a semaphore that only a signal interrupts. A real-time one, which nobody else in the
/// process is likely to use.
enum WakeSignal {
  static let number = __libc_current_sigrtmax() - 3

  private static let handler: Void = {
    var action = sigaction()
    unsafe action.__sigaction_handler.sa_handler = { _ in }
    // Without SA_RESTART: the wait has to end.
    action.sa_flags = 0
    // SAFETY: the handler does nothing, so nothing in it is unsafe at any moment.
    unsafe sigaction(number, &action, nil)
  }()

  static func install() {
    handler
  }

  /// Lets the signal reach the calling thread.
  static func unblock() {
    install()
    var set = sigset_t()
    unsafe sigemptyset(&set)
    unsafe sigaddset(&set, number)
    unsafe pthread_sigmask(SIG_UNBLOCK, &set, nil)
  }
}
