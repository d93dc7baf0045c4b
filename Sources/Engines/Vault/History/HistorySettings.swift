import Store
import Synchronization

/// How much of what items were a process keeps, for all sessions of a vault.
final class HistorySettings: Sendable {
  private let value: Mutex<HistoryRetention?>

  /// nil: the process adds no versions, and leaves those that are there.
  init(_ retention: HistoryRetention? = nil) { value = Mutex(retention) }

  var retention: HistoryRetention? {
    get { value.withLock { $0 } }
    set { value.withLock { $0 = newValue } }
  }
}
