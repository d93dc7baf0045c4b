import Glibc

/// Waiting for a time, where there is no event to wait for.
package enum Pause {
  /// usleep(3). A signal ends it early.
  package static func microseconds(_ count: UInt32) {
    usleep(count)
  }

  /// pause(2): returns when this thread has handled a signal.
  package static func untilSignal() {
    pause()
  }
}
