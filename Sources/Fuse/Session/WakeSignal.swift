import Glibc

/// A signal that does nothing but end the wait of the thread it is sent to.
///
/// A read of the kernel's device ends for nothing else. A real-time signal, which no other code in the process is likely to
/// use.
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

  /// Lets only this signal reach the calling thread, and those of faults: the others are for the main thread.
  static func blockOthers() {
    handler
    var set = sigset_t()
    unsafe sigfillset(&set)
    for fault in [SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGABRT, SIGSYS, number] {
      unsafe sigdelset(&set, fault)
    }
    unsafe pthread_sigmask(SIG_SETMASK, &set, nil)
  }
}
