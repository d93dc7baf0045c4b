import CSystem

/// Input on a terminal that does not show it (ECHO of termios(3)).
package enum HiddenTyping {
  /// Runs `body` while a terminal shows nothing of what is typed; input from before is dropped. The terminal has its modes
  /// again when `body` returns, when SIGHUP, SIGINT, SIGQUIT or SIGTERM ends the process meanwhile, and while SIGTSTP
  /// keeps it stopped.
  ///
  /// Only once at a time in a process. Where the descriptor is no terminal, `body` alone is run.
  package static func run<Value: ~Copyable, Failure: Error>(
    on terminal: Int32, _ body: () throws(Failure) -> Value
  ) throws(Failure) -> Value {
    guard linux_hide_typing(terminal) == 0 else { return try body() }
    defer { linux_show_typing() }
    return try body()
  }
}
