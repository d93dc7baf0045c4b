import Dispatch
import Platform

/// systemd(1), told how the mount is: sd_notify(3), without its library.
final class ServiceManager: Sendable {
  private let socket: String
  /// nil: the service has no watchdog.
  let watchdog: Watchdog?

  /// nil where no service manager asked for it. What it put into the environment is taken out, so that no
  /// child speaks for this process.
  init?(_ mountPoint: String) {
    guard let socket = Environment.remove("NOTIFY_SOCKET") else { return nil }
    self.socket = socket
    let interval = Environment.remove("WATCHDOG_USEC").flatMap(Int.init)
    let process = Environment.remove("WATCHDOG_PID")
    let isMeant = process == nil || process == String(CurrentProcess.number)
    watchdog = isMeant ? interval.map { Watchdog(every: $0 / 2, socket, mountPoint) } : nil
  }

  func isReady(_ mountPoint: String) {
    tell("READY=1\nSTATUS=mounted on \(mountPoint)")
    watchdog?.begin()
  }

  func isStopping() {
    watchdog?.end()
    tell("STOPPING=1\nSTATUS=unmounted")
  }

  private func tell(_ text: String) {
    try? DatagramSocket.send(text, to: socket)
  }
}

/// The signs of life that systemd(1) expects of a service with WatchdogSec=.
///
/// It asks as every program asks, through the kernel: a mount that hangs gives no sign of life.
///
/// @unchecked: the timer is an object of Dispatch, which may be used from any thread; `pauses` is used on the queue only.
final class Watchdog: @unchecked Sendable {
  private let queue = DispatchQueue(label: "keyhole.watchdog")
  private let timer: any DispatchSourceTimer
  private let interval: DispatchTimeInterval
  /// Those that have not been resumed.
  private var pauses = 0

  /// Gives no sign before ``begin()``.
  init(every microseconds: Int, _ socket: String, _ mountPoint: String) {
    interval = .microseconds(max(microseconds, 1000))
    timer = DispatchSource.makeTimerSource(queue: queue)
    timer.setEventHandler { [weak self] in
      guard let self, pauses == 0, Files.answers(mountPoint + "/.keyhole/status") else { return }
      try? DatagramSocket.send("WATCHDOG=1", to: socket)
    }
    // Active from the beginning: Dispatch traps where an inactive source is released, as when mounting fails.
    timer.schedule(deadline: .distantFuture)
    timer.activate()
  }

  func begin() {
    timer.schedule(deadline: .now(), repeating: interval)
  }

  func end() {
    timer.cancel()
  }

  /// Asks nothing until ``resume()``, as a mount that is asked can't be unmounted; calls `done` once nothing is asked any
  /// more. A sign that is due meanwhile is left out: systemd kills a mount that is paused for longer than WatchdogSec=.
  func pause(_ done: @escaping @Sendable () -> Void) {
    queue.async { [self] in
      pauses += 1
      done()
    }
  }

  /// To be called once for each ``pause(_:)``.
  func resume() {
    queue.async { [self] in pauses -= 1 }
  }
}
