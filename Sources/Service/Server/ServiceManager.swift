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
    // A service that was never ready is ended, so this one waits for as long as the manager does not read.
    try? DatagramSocket.send("READY=1\nSTATUS=mounted on \(mountPoint)", to: socket)
    watchdog?.begin()
  }

  func isStopping() {
    watchdog?.end()
    try? DatagramSocket.send("STOPPING=1\nSTATUS=unmounted", to: socket, patience: 1)
  }
}

/// The signs of life that systemd(1) expects of a service with WatchdogSec=.
///
/// It asks as every program asks, through the kernel: a mount that hangs gives no sign of life.
///
/// @unchecked: the timer is an object of Dispatch, which may be used from any thread; `pauses` and `end` are used on the
/// queue only.
final class Watchdog: @unchecked Sendable {
  /// A program that does not end its pause must not make a mount that hangs look alive.
  private static let longestPause = DispatchTimeInterval.seconds(10)

  private let queue = DispatchQueue(label: "keyhole.watchdog")
  private let timer: any DispatchSourceTimer
  private let interval: DispatchTimeInterval
  /// Those that were begun and not resumed; a resumption may come before its pause.
  private var pauses = 0
  private var endOfPause = DispatchTime(uptimeNanoseconds: 0)

  /// Gives no sign before ``begin()``.
  init(every microseconds: Int, _ socket: String, _ mountPoint: String) {
    interval = .microseconds(max(microseconds, 1000))
    timer = DispatchSource.makeTimerSource(queue: queue)
    timer.setEventHandler { [weak self] in
      // Where no process can be made that asks, a mount that answers must not be ended for it.
      guard let self, isPaused || Files.answers(mountPoint + "/.keyhole/status") != false else { return }
      try? DatagramSocket.send("WATCHDOG=1", to: socket, patience: 1)
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

  /// Gives the signs without asking until ``resume()``, for ten seconds at most: a mount that is asked can't be unmounted.
  /// Calls `done` once nothing is asked any more.
  func pause(_ done: @escaping @Sendable () -> Void) {
    queue.async { [self] in
      pauses += 1
      endOfPause = .now() + Self.longestPause
      done()
    }
  }

  /// To be called once for each ``pause(_:)``.
  func resume() {
    queue.async { [self] in pauses -= 1 }
  }

  private var isPaused: Bool { pauses > 0 && .now() < endOfPause }
}
