import Dispatch
import Model
import Platform
import Prompting
import Synchronization

/// The progress of a command on a terminal: shown on standard error from the first second on, and taken away at the end.
///
/// A thread of its own draws it, so a step that takes long still shows that time goes on. Elsewhere nothing is printed.
final class ProgressBar {
  /// The unit of the amounts.
  enum Unit {
    case steps
    case bytes
  }

  private let drawing: ProgressDrawing
  private let timer: (any DispatchSourceTimer)?

  /// - Parameters:
  ///   - total: the amount of all; nil: it is not known yet.
  ///   - verb: the activity of the command, as `importing`.
  ///   - unit: of the amounts.
  init(total: Int?, _ verb: String, _ unit: Unit = .steps) {
    drawing = ProgressDrawing(total: total, verb, unit)
    guard StandardStream.errors.isTerminal, StandardError.showsNotes, environment("TERM") != "dumb" else {
      timer = nil
      return
    }
    timer = DispatchSource.makeTimerSource(queue: Background.queue)
    timer?.schedule(deadline: .now() + .seconds(1), repeating: .milliseconds(200))
    timer?.setEventHandler { [drawing] in drawing.draw() }
    timer?.activate()
  }

  /// Runs `body` with a bar whose amounts are not known.
  static func run<Value: ~Copyable, Failure: Error>(
    _ verb: String, _ body: () throws(Failure) -> Value
  ) throws(Failure) -> Value {
    let bar = ProgressBar(total: nil, verb)
    defer { bar.end() }
    return try body()
  }

  /// So many more of them are done.
  func advance(_ count: Int = 1) { drawing.advance(count) }

  /// So much is done.
  func show(_ done: Int) { drawing.show(done, of: nil, nil) }

  /// So much is done, of so much in all. `verb`: another activity than before.
  func show(_ done: Int, of total: Int, _ verb: String? = nil) { drawing.show(done, of: total, verb) }

  /// Takes it away. It may be called more than once.
  func end() {
    timer?.cancel()
    drawing.end()
  }
}

private final class ProgressDrawing: Sendable {
  private static let width = 30

  private struct State {
    var total: Int?
    var verb: String
    var done = 0
    var isShown = false
    var isEnded = false
  }

  private let unit: ProgressBar.Unit
  private let state: Mutex<State>
  private let start = ContinuousClock.now

  init(total: Int?, _ verb: String, _ unit: ProgressBar.Unit) {
    self.unit = unit
    state = Mutex(State(total: total, verb: verb))
  }

  func advance(_ count: Int) { state.withLock { $0.done += count } }

  func show(_ done: Int, of total: Int?, _ verb: String?) {
    state.withLock { state in
      state.done = done
      if let total { state.total = total }
      if let verb { state.verb = verb }
    }
  }

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
      StandardError.draw("\r\u{1B}[K" + text(state))
    }
  }

  /// A question in the terminal, or an editor, must not be drawn over: these turn the echo off.
  private static var mayDraw: Bool {
    (try? TerminalModes(of: StandardStream.errors.number))?.echoes ?? false
  }

  private func text(_ state: State) -> String {
    let seconds = (ContinuousClock.now - start).components.seconds
    guard let total = state.total, total > 0 else { return "\(state.verb) … \(seconds) s" }
    // Other processes may add to what was counted at the beginning.
    let done = min(state.done, total)
    let filled = done * Self.width / total
    let bar = String(repeating: "#", count: filled) + String(repeating: ".", count: Self.width - filled)
    return "\(state.verb) [\(bar)] \(amounts(done, total)), \(seconds) s"
  }

  private func amounts(_ done: Int, _ total: Int) -> String {
    switch unit {
    case .steps: "\(done)/\(total)"
    case .bytes: "\(Self.mebibytes(done))/\(Self.mebibytes(total)) MiB"
    }
  }

  /// With one digit after the point.
  private static func mebibytes(_ bytes: Int) -> String {
    let tenths = bytes * 10 / (1 << 20)
    return "\(tenths / 10).\(tenths % 10)"
  }
}
