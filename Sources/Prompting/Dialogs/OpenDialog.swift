import Platform
import Synchronization

/// A dialog that stands in a terminal or a window.
struct OpenDialog {
  let process: Int32
  let terminal: TerminalState?
}

extension Pinentry {
  /// Ends the dialog that is open in this process, if there is one, and leaves its terminal as it was, which is so when this
  /// returns, also where another thread does it.
  static func endOpen() {
    ending.withLock { _ in
      guard let dialog = open.withLock({ $0.take() }) else { return }
      // The signal of its own time limit, on which it takes itself off the terminal.
      ProcessNumber.send(.alarm, to: dialog.process)
      let hasEnded = ProcessHandle(process: dialog.process)?.waitForEnd(seconds: patience) ?? true
      if !hasEnded { ProcessNumber.send(.kill, to: dialog.process) }
      dialog.terminal?.restore(drawn: !hasEnded || ProcessNumber.wasEndedBySignal(dialog.process))
    }
  }

  /// Ends the dialog that is open in this process, if there is one, as its terminal is another program's now. The dialog does not end
  /// in order: it would put its modes over those of that program.
  static func takeOff() {
    ending.withLock { _ in
      guard let dialog = open.withLock({ $0.take() }) else { return }
      ProcessNumber.send(.kill, to: dialog.process)
      _ = ProcessHandle(process: dialog.process)?.waitForEnd(seconds: patience)
      dialog.terminal?.restore(drawn: true)
    }
  }

  private static let ending = Mutex(())
}
