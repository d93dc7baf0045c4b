import CSystem
import Synchronization

/// Input on a terminal that does not show it (ECHO of termios(3)).
package enum HiddenTyping {
  private struct State {
    /// Runs that are under way, one in the other.
    var depth = 0
    /// A run that began before `end()` has no effect after it.
    var generation = 0
  }

  private static let state = Mutex(State())

  /// Runs `body` while a terminal shows nothing of what is typed; input from before is dropped, and what `body` did not read. The
  /// terminal has its modes again when `body` returns, when SIGHUP, SIGINT, SIGQUIT or SIGTERM ends the process meanwhile, and
  /// while SIGTSTP keeps it stopped.
  ///
  /// Only on one terminal at a time in a process. A run within a run drops earlier input, and the terminal has its modes again when
  /// the outer one returns. Where the descriptor is no terminal, `body` alone is run.
  package static func run<Value: ~Copyable, Failure: Error>(
    on terminal: Int32, _ body: () throws(Failure) -> Value
  ) throws(Failure) -> Value {
    guard let generation = begin(terminal) else { return try body() }
    defer { leave(generation) }
    return try body()
  }

  /// Runs `body`, which waits for what is typed behind a prompt, within a `run`: where the process was stopped and goes on, the prompt is
  /// written to a file again.
  package static func showingAgain<Value: ~Copyable, Failure: Error>(
    _ prompt: String, on file: Int32, _ body: () throws(Failure) -> Value
  ) throws(Failure) -> Value {
    unsafe linux_keep_prompt(file, prompt, prompt.utf8.count)
    defer { unsafe linux_keep_prompt(file, "", 0) }
    return try body()
  }

  /// The terminal has its modes at once, and runs that are under way have no effect any more: what was asked for is settled on another
  /// thread than theirs.
  package static func end() {
    state.withLock { state in
      state.generation &+= 1
      guard state.depth > 0 else { return }
      state.depth = 0
      linux_show_typing()
    }
  }

  /// nil: it is no terminal.
  private static func begin(_ terminal: Int32) -> Int? {
    state.withLock { state in
      if state.depth == 0 {
        guard linux_hide_typing(terminal) == 0 else { return nil }
      } else {
        TerminalModes.dropInput(of: terminal)
      }
      state.depth &+= 1
      return state.generation
    }
  }

  private static func leave(_ generation: Int) {
    state.withLock { state in
      guard state.generation == generation else { return }
      state.depth &-= 1
      if state.depth == 0 { linux_show_typing() }
    }
  }
}
