package import Dispatch
package import Platform

/// SIGTERM, SIGINT, SIGHUP and SIGQUIT, which end the mount in good order.
///
/// Dispatch's own sources of signals are installed some time after they are activated, and what comes before is lost.
/// So they are blocked first thing, and wait until they are read.
package enum EndSignals {
  private static let signals: [Signals.Signal] = [.terminate, .interrupt, .hangUp, .quit]

  /// Keeps them for ``watch(_:)``. Before any thread is started, or it could be the one that takes them.
  package static func hold() {
    Signals.block(signals)
    // SIGPIPE: EPIPE says the same, and ends nothing. The others mean nothing here, and would leave a dead mount behind.
    Signals.ignore([.pipe, .user1, .user2])
  }

  /// Calls `end` for each that came since ``hold()``, on some thread. nil: there is no descriptor left.
  static func watch(_ end: @escaping @Sendable () -> Void) -> (any DispatchSourceRead)? {
    watch(for: signals) { _ in end() }
  }

  /// The same for some of them; `end` gets the signal. The others stay pending.
  package static func watch(
    for signals: [Signals.Signal], _ end: @escaping @Sendable (Signals.Signal) -> Void
  ) -> (any DispatchSourceRead)? {
    guard let descriptor = try? SignalDescriptor(signals) else { return nil }
    let source = DispatchSource.makeReadSource(fileDescriptor: descriptor.number, queue: Background.queue)
    source.setEventHandler {
      if let signal = descriptor.next() { end(signal) }
    }
    // The descriptor is closed when it is not read any more.
    source.setCancelHandler { withExtendedLifetime(descriptor) {} }
    source.activate()
    return source
  }
}
