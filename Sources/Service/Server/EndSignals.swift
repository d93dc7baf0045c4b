import CSystem
package import Dispatch
import Glibc
import Platform
import Store

/// SIGTERM, SIGINT, SIGHUP and SIGQUIT, which end the mount in good order.
///
/// Dispatch's own sources of signals are installed some time after they are activated, and what comes before is lost.
/// So they are blocked first thing, and wait until they are read.
package enum EndSignals {
  private static let numbers = [SIGTERM, SIGINT, SIGHUP, SIGQUIT]

  /// Keeps them for ``watch(_:)``. Before any thread is started, or it could be the one that takes them.
  package static func hold() {
    var signals = set(of: numbers)
    unsafe pthread_sigmask(SIG_BLOCK, &signals, nil)
    // EPIPE says the same, and ends nothing.
    signal(SIGPIPE, SIG_IGN)
    // They mean nothing here, and would leave a dead mount behind.
    signal(SIGUSR1, SIG_IGN)
    signal(SIGUSR2, SIG_IGN)
  }

  /// Calls `end` for each that came since ``hold()``, on some thread. nil: there is no descriptor left.
  static func watch(_ end: @escaping @Sendable () -> Void) -> (any DispatchSourceRead)? {
    watch(for: numbers) { _ in end() }
  }

  /// The same for some of them; `end` gets the number. The others stay pending.
  package static func watch(
    for numbers: [Int32], _ end: @escaping @Sendable (Int32) -> Void
  ) -> (any DispatchSourceRead)? {
    var signals = set(of: numbers)
    let descriptor = unsafe linux_signal_descriptor(&signals)
    guard descriptor >= 0 else { return nil }
    let source = DispatchSource.makeReadSource(fileDescriptor: descriptor, queue: Background.queue)
    source.setEventHandler {
      let number = linux_next_signal(descriptor)
      if number != 0 { end(number) }
    }
    source.setCancelHandler { close(descriptor) }
    source.activate()
    return source
  }

  /// Ends this process by a signal that was taken, so that its parent sees that.
  package static func die(by number: Int32) -> Never {
    var signals = set(of: [number])
    signal(number, SIG_DFL)
    unsafe pthread_sigmask(SIG_UNBLOCK, &signals, nil)
    raise(number)
    _exit(128 &+ number)
  }

  private static func set(of numbers: [Int32]) -> sigset_t {
    var signals = sigset_t()
    unsafe sigemptyset(&signals)
    for number in numbers { unsafe sigaddset(&signals, number) }
    return signals
  }
}
