import CFuse
import Platform
import Synchronization

/// The messages of libfuse. By default they are dropped, and nothing reaches standard error.
public enum Log {
  /// How grave a message is: the numbers of `syslog(3)`, 0 the gravest, 7 for debugging.
  public struct Level: RawRepresentable, Comparable, Sendable {
    /// The number of syslog(3), from 0 (`LOG_EMERG`) to 7 (`LOG_DEBUG`).
    public let rawValue: UInt32

    /// The level of a number of syslog(3); it is not checked.
    public init(rawValue: UInt32) {
      self.rawValue = rawValue
    }

    /// Compares the numbers: the graver message is less.
    public static func < (left: Level, right: Level) -> Bool { left.rawValue < right.rawValue }
  }

  private struct State {
    var handler: (@Sendable (Level, String) -> Void)?
    /// Messages while a thread listens to its own, by thread.
    var captured: [ThreadID: [String]] = [:]
  }

  private static let state = Mutex(State())
  /// Once a process: the handler is libfuse's global one.
  private static let install: Void = unsafe fuse_set_log_func(receiveMessage)
}

extension Log {
  /// Hands each message of libfuse to `handler`, in place of the one before; nil drops them.
  ///
  /// One for the whole process, called on any thread. In libfuse: `fuse_set_log_func`.
  public static func setHandler(_ handler: (@Sendable (Level, String) -> Void)?) {
    install
    state.withLock { $0.handler = handler }
  }

  /// Does something and returns what libfuse said on this thread meanwhile.
  static func capture<Result>(_ body: () -> Result) -> (Result, [String]) {
    install
    let thread = ThreadID.current
    state.withLock { $0.captured[thread] = [] }
    let result = body()
    return (result, state.withLock { $0.captured.removeValue(forKey: thread) ?? [] })
  }

  fileprivate static func receive(_ level: Level, _ message: String) {
    let thread = ThreadID.current
    let handler = state.withLock { state in
      state.captured[thread]?.append(message)
      return state.handler
    }
    handler?(level, message)
  }
}

private func receiveMessage(
  _ level: fuse_log_level, _ format: UnsafePointer<CChar>?, _ values: CVaListPointer?
) {
  let message = unsafe withUnsafeTemporaryAllocation(of: CChar.self, capacity: 512) { buffer -> String in
    guard let start = buffer.baseAddress, let format = unsafe format, let values = unsafe values else {
      return ""
    }
    // SAFETY: cut to the buffer's size and always terminated.
    unsafe vsnprintf(start, buffer.count, format, values)
    return unsafe String(cString: start)
  }
  let line = message.last == "\n" ? String(message.dropLast()) : message
  Log.receive(Log.Level(rawValue: level.rawValue), line)
}
