import Model
import Platform
import Synchronization

/// Tells of changed suites, one after the other, on a thread that may wait. A suite that changes again meanwhile is reported
/// once.
final class SuiteNews: Sendable {
  private struct State {
    var waiting: [ExactString] = []
    var isTelling = false
  }

  private let turns = SerialTurns()
  private let state = Mutex(State())
  private let changed: @Sendable (ExactString) -> Void

  init(_ changed: @escaping @Sendable (ExactString) -> Void) { self.changed = changed }

  func tell(_ suite: ExactString) {
    let isFirst = state.withLock { state in
      if !state.waiting.contains(suite) { state.waiting.append(suite) }
      defer { state.isTelling = true }
      return !state.isTelling
    }
    guard isFirst, !turns.run({ [self] in tellAll() }) else { return }
    state.withLock { $0.isTelling = false }
  }

  private func tellAll() {
    while let suite = next() { changed(suite) }
  }

  private func next() -> ExactString? {
    state.withLock { state in
      guard !state.waiting.isEmpty else {
        state.isTelling = false
        return nil
      }
      let next = state.waiting.first
      state.waiting = Array(state.waiting.dropFirst())
      return next
    }
  }
}
