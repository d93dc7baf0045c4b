import CLinux
import Dispatch
import Glibc
import Store

/// SIGTERM, SIGINT, SIGHUP and SIGQUIT, which end the mount in good order.
///
/// Dispatch's own sources of signals are installed some time after they are activated, and what comes before is lost.
/// So they are blocked first thing, and wait until somebody reads them.
enum EndSignals {
  private static let numbers = [SIGTERM, SIGINT, SIGHUP, SIGQUIT]

  /// Keeps them for ``watch(_:)``. Before any thread is started, or it could be the one that takes them.
  static func hold() {
    var signals = set
    unsafe pthread_sigmask(SIG_BLOCK, &signals, nil)
    // EPIPE says the same, and ends nothing.
    signal(SIGPIPE, SIG_IGN)
    // They mean nothing here, and would leave a dead mount behind.
    signal(SIGUSR1, SIG_IGN)
    signal(SIGUSR2, SIG_IGN)
  }

  /// Calls `end` for each that came since ``hold()``, on some thread. nil: there is no descriptor left.
  static func watch(_ end: @escaping @Sendable () -> Void) -> (any DispatchSourceRead)? {
    var signals = set
    let descriptor = unsafe linux_signal_descriptor(&signals)
    guard descriptor >= 0 else { return nil }
    let source = DispatchSource.makeReadSource(fileDescriptor: descriptor, queue: Background.queue)
    source.setEventHandler { if linux_next_signal(descriptor) != 0 { end() } }
    source.setCancelHandler { close(descriptor) }
    source.activate()
    return source
  }

  private static var set: sigset_t {
    var signals = sigset_t()
    unsafe sigemptyset(&signals)
    for number in numbers { unsafe sigaddset(&signals, number) }
    return signals
  }
}
