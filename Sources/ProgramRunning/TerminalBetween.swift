import Platform
import SecretMemory

/// The user's terminal, while the program has a pseudo-terminal of its own: all that is typed passes to that, and the window's
/// size. The line discipline of the program's terminal makes signals of Ctrl-C and Ctrl-Z.
///
/// As without a terminal between, Ctrl-C reaches all of the user's foreground group, such as a script around `keyhole run`, and
/// what the program has not read when it ends is the next program's.
final class TerminalBetween {
  private let terminal: Descriptor
  private let emulator: Descriptor
  /// Gives the bytes that were typed and not read, once the program has ended.
  private let rest: Descriptor
  /// The user's terminal's, from before it was taken.
  private var modes: TerminalModes
  private var input: SecretBytes
  private var count = 0
  private var isPassing = false
  private var isClosed = false
  /// Whether the program's terminal has the modes that it began with; it may have been made while a shell had its own on the user's.
  private var isNew = true

  /// `terminal`: the user's, from `user`.
  init(
    _ terminal: consuming Descriptor, _ emulator: consuming Descriptor, _ rest: consuming Descriptor
  ) throws {
    modes = try TerminalModes(of: terminal.number)
    input = try SecretBytes(count: 256)
    self.terminal = terminal
    self.emulator = emulator
    self.rest = rest
    resume()
  }

  /// The terminal that is typed on: standard input, else the controlling one (tty(4)), as for `less` behind a pipe. nil: there
  /// is none.
  static func user() -> Descriptor? {
    StandardStream.input.isTerminal
      ? try? Descriptor(duplicating: StandardStream.input.number)
      : try? Descriptor("/dev/tty", [.readingAndWriting, .noControllingTerminal])
  }

  deinit { pause() }

  /// For what is typed, and for the program's terminal to take it.
  var entries: [Poll.Entry] {
    [
      Poll.Entry(isPassing && !isClosed && count == 0 ? terminal.number : nil),
      Poll.Entry(count > 0 ? emulator.number : nil, .output),
    ]
  }

  /// Whether another process group has the terminal, or had it when last looked at.
  var isInBackground: Bool { !isPassing && !isClosed }

  /// Goes on after a stop: the window may have changed, and a shell may have given the terminal back.
  func resume() {
    resize()
    take()
  }

  /// Takes the terminal, where this process is in the foreground: a background process may neither read it nor set its modes.
  func take() {
    guard isInBackground, TerminalModes.isForeground(terminal.number),
      let present = try? TerminalModes(of: terminal.number)
    else { return }
    // Those that a shell has for its own lines are gone when it gives the terminal away.
    if isNew, (try? TerminalModes(of: emulator.number))?.hasFlags(of: modes) == true {
      try? present.set(on: emulator.number)
    }
    (modes, isNew) = (present, false)
    isPassing = (try? modes.passingBytes.set(on: terminal.number)) != nil
  }

  /// Gives the terminal its modes from before.
  func pause() {
    guard isPassing else { return }
    isPassing = false
    if TerminalModes.isForeground(terminal.number) { try? modes.set(on: terminal.number) }
  }

  /// The program's own group gets the signal from its terminal.
  private func passSignal() {
    guard let modes = try? TerminalModes(of: emulator.number) else { return }
    input.withSpan(0..<count) { bytes in
      for index in bytes.indices {
        if let signal = modes.signal(of: bytes[index]) { return SignalQueue.sendToOthers(signal) }
      }
    }
  }

  /// Gives the terminal its modes, and what the program has not read. To be called when the program has ended.
  func finish() {
    if isPassing, TerminalModes.isForeground(terminal.number),
      (try? modes.silent.set(on: terminal.number)) != nil
    {
      while true {
        var room = input.mutableSpan
        guard let read = try? rest.read(into: &room), read > 0 else { break }
        input.withSpan(0..<read) { terminal.type($0) }
      }
    }
    count = 0
    pause()
  }

  func resize() {
    WindowSize(of: terminal.number)?.set(on: emulator.number)
  }

  /// Reads once. - Returns: false: the terminal is gone.
  func read() -> Bool {
    var room = input.mutableSpan
    count = (try? terminal.read(into: &room)) ?? 0
    isClosed = count == 0
    passSignal()
    return !isClosed
  }

  func write() {
    input.withSpan(0..<count) { try? emulator.write($0) }
    count = 0
  }
}
