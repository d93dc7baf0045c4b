import CSystem
import Glibc

/// Closes the ways by which a process's memory leaves it.
///
/// Must be the first statement of `main`. Swift's crash backtracer prints the bytes that registers point
/// at, also with PR_SET_DUMPABLE 0, so the signals it handles go back to their defaults; core files and
/// ptrace(2) of other processes are switched off; new files are private to the user.
///
/// `identify` is called before other processes of the user can't look into this one any more: it lets them see which
/// program this is, and must touch no secret.
///
/// `coreFiles`: whether a program that this process starts may raise RLIMIT_CORE again.
package func hardenProcess(_ coreFiles: CoreFiles = .never, after identify: () -> Void = {}) {
  for fatal in [SIGILL, SIGTRAP, SIGSEGV, SIGBUS, SIGFPE, SIGABRT, SIGQUIT, SIGSYS] {
    signal(fatal, SIG_DFL)
  }
  let highest = coreFiles == .never ? 0 : ResourceLimit.coreFile.values.highest
  ResourceLimit.coreFile.set(ResourceLimit.Values(current: 0, highest: highest))
  umask(0o077)
  identify()
  _ = linux_set_dumpable(0)
}

/// The core files of a process and of those that it starts. This process has none in any case.
package enum CoreFiles: Sendable {
  /// The hard limit is 0.
  case never
  /// The hard limit stays.
  case ofStartedPrograms
}
