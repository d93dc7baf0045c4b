import Dispatch
import Platform

/// systemd(1), told how the mount is: sd_notify(3), without its library.
///
/// @unchecked: the timer is an object of Dispatch, which may be used from any thread.
final class ServiceManager: @unchecked Sendable {
  private let socket: String
  private let watchdog: (timer: any DispatchSourceTimer, interval: DispatchTimeInterval)?

  /// nil where no service manager asked for it. What it put into the environment is taken out, so that no
  /// child speaks for this process.
  init?(_ mountPoint: String) {
    guard let socket = Environment.remove("NOTIFY_SOCKET") else { return nil }
    self.socket = socket
    let interval = Environment.remove("WATCHDOG_USEC").flatMap(Int.init)
    let process = Environment.remove("WATCHDOG_PID")
    let isMeant = process == nil || process == String(CurrentProcess.number)
    watchdog = isMeant ? interval.map { Self.watchdog(every: $0 / 2, socket, mountPoint) } : nil
  }

  func isReady(_ mountPoint: String) {
    tell("READY=1\nSTATUS=mounted on \(mountPoint)")
    if let watchdog { watchdog.timer.schedule(deadline: .now(), repeating: watchdog.interval) }
  }

  func isStopping() {
    watchdog?.timer.cancel()
    tell("STOPPING=1\nSTATUS=unmounted")
  }

  private func tell(_ text: String) {
    try? DatagramSocket.send(text, to: socket)
  }

  /// It asks as every program asks, through the kernel: a mount that hangs gives no sign of life.
  ///
  /// Active from the beginning, though nothing is due yet: Dispatch traps where an inactive source is released, as
  /// when mounting fails.
  private static func watchdog(every microseconds: Int, _ socket: String, _ mountPoint: String)
    -> (timer: any DispatchSourceTimer, interval: DispatchTimeInterval)
  {
    let timer = DispatchSource.makeTimerSource(queue: DispatchQueue(label: "keyhole.watchdog"))
    timer.setEventHandler {
      guard Files.hasName(mountPoint + "/.keyhole/status") else { return }
      try? DatagramSocket.send("WATCHDOG=1", to: socket)
    }
    timer.schedule(deadline: .distantFuture)
    timer.activate()
    return (timer, .microseconds(max(microseconds, 1000)))
  }
}
