import Model
import Platform
import Synchronization

/// Tells of changed suites, one after the other, on a thread that may wait. A suite that changes again meanwhile is reported
/// once.
final class SuiteNews: Sendable {
  private struct State {
    /// The next one last.
    var waiting: [ExactString] = []
    var heard: [ExactString] = []
    var names: Set<ExactString> = []
    var isTelling = false
  }

  private let turns = SerialTurns()
  private let state = Mutex(State())
  private let changed: @Sendable (ExactString) -> Void

  init(_ changed: @escaping @Sendable (ExactString) -> Void) { self.changed = changed }

  func tell(_ suite: ExactString) {
    let isFirst = state.withLock { state in
      if state.names.insert(suite).inserted { state.heard.append(suite) }
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
      if state.waiting.isEmpty { (state.waiting, state.heard) = (state.heard.reversed(), []) }
      guard let next = state.waiting.popLast() else {
        state.isTelling = false
        return nil
      }
      state.names.remove(next)
      return next
    }
  }
}
