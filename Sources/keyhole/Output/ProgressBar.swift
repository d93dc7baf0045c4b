import Dispatch
import Model
import Platform
import Prompting
import Synchronization

/// The progress of a command on a terminal: shown on standard error from the first second on, and taken away at the end.
///
/// A thread of its own draws it, so a step that takes long still shows that time goes on. Elsewhere nothing is printed.
final class ProgressBar {
  private let drawing: ProgressDrawing
  private let timer: (any DispatchSourceTimer)?

  /// `total`: how many steps there are; nil: it is not known. `verb`: what the command does, as `importing`.
  init(total: Int?, _ verb: String) {
    drawing = ProgressDrawing(total: total, verb)
    guard StandardStream.errors.isTerminal, StandardError.showsNotes, environment("TERM") != "dumb" else {
      timer = nil
      return
    }
    timer = DispatchSource.makeTimerSource(queue: .global())
    timer?.schedule(deadline: .now() + .seconds(1), repeating: .milliseconds(200))
    timer?.setEventHandler { [drawing] in drawing.draw() }
    timer?.activate()
  }

  /// Runs `body` with a bar for something of which no steps are known.
  static func run<Value: ~Copyable, Failure: Error>(
    _ verb: String, _ body: () throws(Failure) -> Value
  ) throws(Failure) -> Value {
    let bar = ProgressBar(total: nil, verb)
    defer { bar.end() }
    return try body()
  }

  /// One more of them is done.
  func advance() { drawing.advance() }

  func show(_ done: Int) { drawing.show(done) }

  /// Takes it away. It may be called more than once.
  func end() {
    timer?.cancel()
    drawing.end()
  }
}

private final class ProgressDrawing: Sendable {
  private static let width = 30

  private struct State {
    var done = 0
    var isShown = false
    var isEnded = false
  }

  private let total: Int?
  private let verb: String
  private let state = Mutex(State())
  private let start = ContinuousClock.now

  init(total: Int?, _ verb: String) {
    self.total = total
    self.verb = verb
  }

  func advance() { state.withLock { $0.done += 1 } }

  func show(_ done: Int) { state.withLock { $0.done = done } }

  func end() {
    state.withLock { state in
      if state.isShown { StandardError.draw("\r\u{1B}[K") }
      (state.isShown, state.isEnded) = (false, true)
    }
  }

  func draw() {
    state.withLock { state in
      guard !state.isEnded, Self.mayDraw else { return }
      state.isShown = true
      StandardError.draw("\r\u{1B}[K" + text(state.done))
    }
  }

  /// A question in the terminal, or an editor, must not be drawn over: these turn the echo off.
  private static var mayDraw: Bool {
    (try? TerminalModes(of: StandardStream.errors.number))?.echoes ?? false
  }

  private func text(_ done: Int) -> String {
    let seconds = (ContinuousClock.now - start).components.seconds
    guard let total, total > 0 else { return "\(verb) … \(seconds) s" }
    let filled = min(Self.width, done * Self.width / total)
    let bar = String(repeating: "#", count: filled) + String(repeating: ".", count: Self.width - filled)
    return "\(verb) [\(bar)] \(done)/\(total), \(seconds) s"
  }
}
