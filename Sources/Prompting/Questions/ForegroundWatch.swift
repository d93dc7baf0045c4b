import Dispatch
import Platform
import Synchronization

/// Takes the dialog off its terminal while the process that asks is stopped or in the background: a shell reads the keys then, and
/// what a person types for one of the two would reach the other.
enum ForegroundWatch {
  private struct State {
    var departures = 0
    var isAway = false
  }

  private static let state = Mutex(State())
  private static let returned = DispatchSemaphore(value: 0)
  /// No event tells that the foreground group of a terminal changes.
  private static let interval = DispatchTimeInterval.milliseconds(50)

  /// @unchecked: a source is only kept.
  private struct Timer: @unchecked Sendable {
    let source: any DispatchSourceTimer
  }

  private static let timer = Mutex<Timer?>(nil)

  /// How often the process has left the foreground.
  static var departures: Int { state.withLock { $0.departures } }

  /// Watches a process. `onLeave` is called when the dialog was taken off, `onReturn` when the process is in the foreground again,
  /// before the question comes again.
  static func begin(
    _ process: Int32, onLeave: @escaping @Sendable () -> Void, onReturn: @escaping @Sendable () -> Void
  ) {
    let source = DispatchSource.makeTimerSource(queue: DispatchQueue(label: "keyhole.foreground"))
    source.setEventHandler { look(at: process, onLeave, onReturn) }
    source.schedule(deadline: .now() + interval, repeating: interval)
    source.activate()
    timer.withLock { $0 = Timer(source: source) }
  }

  private static func look(at process: Int32, _ onLeave: () -> Void, _ onReturn: () -> Void) {
    // Where the process has ended, its question is withdrawn elsewhere.
    guard let status = ProcessFiles(process).status else { return }
    guard status.mayUseTerminal else {
      let isFirst = state.withLock { state in
        defer { state.isAway = true }
        if !state.isAway { state.departures += 1 }
        return !state.isAway
      }
      // Each time: a dialog may just have been opened.
      Pinentry.takeOff()
      if isFirst { onLeave() }
      return
    }
    guard state.withLock({ $0.isAway }) else { return }
    onReturn()
    state.withLock { $0.isAway = false }
    returned.signal()
  }

  /// Returns when the process is in the foreground again; false: it has not left it.
  static func waitForReturn(since departures: Int) -> Bool {
    guard state.withLock({ $0.isAway || $0.departures > departures }) else { return false }
    while state.withLock({ $0.isAway }) { returned.wait() }
    return true
  }
}
