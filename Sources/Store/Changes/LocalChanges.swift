package import Model
import Synchronization

/// The stores that a process has changed by itself, so that it can have the processes of mounts catch up before it ends.
package final class LocalChanges: Sendable {
  /// More suites are not named: a mount notices them by itself.
  private static let limit = 64

  /// Those of a command.
  package static let ofProcess = LocalChanges()

  private let state = Mutex((suites: Set<ExactString>(), hasItems: false))

  init() {}

  /// The suites that were changed, 64 of them at most.
  package var suites: Set<ExactString> { state.withLock { $0.suites } }

  package var isEmpty: Bool { state.withLock { $0.suites.isEmpty && !$0.hasItems } }

  func note(_ changes: [Change]) {
    state.withLock { state in
      for change in changes where change.origin == .local {
        switch change.subject {
        case .suite(let suite), .key(let suite, _):
          if state.suites.count < Self.limit { state.suites.insert(suite) }
        default: state.hasItems = true
        }
      }
    }
  }
}
