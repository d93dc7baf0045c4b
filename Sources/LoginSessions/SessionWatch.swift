import Platform
import Synchronization

/// Hears from logind when a session of the user's is locked or unlocked, and when the machine goes to sleep.
public final class SessionWatch: Sendable {
  /// A report of logind: the lock of a session of the user, or the machine's sleep.
  public enum News: Sendable {
    case locked
    case unlocked
    case sleeps
    case wakes
  }

  private let hear: @Sendable (News) -> Void
  private let problem = Mutex<String?>(nil)
  private let refusal = Mutex<String?>("logind has not answered yet")
  private let connection = Mutex(Connection())

  private struct Connection {
    /// nil: not connected.
    var socket: StreamSocket?
    var isEnded = false
  }

  /// Begins to listen, without waiting for it. `hear` is called on the thread that `start` starts: one of its own, so that
  /// nothing else that waits delays a lock.
  public init(
    onThread start: (_ work: @escaping @Sendable () -> Void) -> Void,
    _ hear: @escaping @Sendable (News) -> Void
  ) {
    self.hear = hear
    start { [weak self] in Self.listen { self } }
  }

  /// Why nothing is heard; nil: something is, or it is not known yet.
  public var failure: String? { problem.withLock { $0 } }

  /// Why the machine does not wait with its sleep until that is heard and done; nil: it does, for as long as logind
  /// lets it (InhibitDelayMaxSec=).
  public var delayFailure: String? { refusal.withLock { $0 } }

  /// Hears no more.
  public func end() {
    let socket = connection.withLock { connection in
      connection.isEnded = true
      return connection.socket.take()
    }
    socket?.shutDown()
  }

  /// `end` ends the connection from now on; nil: there is none any more.
  private func setSocket(_ socket: StreamSocket?) {
    let isEnded = connection.withLock { connection in
      connection.socket = socket
      return connection.isEnded
    }
    if isEnded { socket?.shutDown() }
  }

  private static func listen(_ watch: () -> SessionWatch?) {
    do throws(SystemBus.Failure) {
      var login = LogindSignals(try SystemBus())
      defer { login.letSleep() }
      watch()?.setSocket(login.bus.socket)
      defer { watch()?.setSocket(nil) }
      try login.subscribe()
      while let news = try login.next() {
        guard let watch = watch() else { return }
        watch.problem.withLock { $0 = login.isThere ? nil : LogindSignals.missing }
        for news in news {
          watch.hear(news)
          // It may sleep now: what had to be done before is done.
          if news == .sleeps { login.letSleep() }
        }
        watch.refusal.withLock { $0 = login.delayFailure }
      }
      throw SystemBus.Failure(reason: "the system bus is gone")
    } catch {
      watch()?.problem.withLock { $0 = error.reason }
    }
  }
}
