import Model
import Platform
import Store
import Synchronization

/// Reports which suites change to another process, until that is gone.
final class SuiteWatcher: Sendable {
  /// More suites than this are reported as a change of any.
  private static let limit = 1_000

  private let channel: MessageChannel
  private let store: SettingsStore
  private let pending = Mutex(Pending())
  private let isChanged: WakePipe

  private struct Pending {
    var suites: Set<ExactString> = []
    var isEverything = true

    var isEmpty: Bool { suites.isEmpty && !isEverything }
  }

  /// - Throws: `tooManyOpen`.
  init(_ channel: MessageChannel, _ store: SettingsStore) throws(StoreError) {
    isChanged = try MessageChannel.makeWakePipe()
    (self.channel, self.store) = (channel, store)
  }

  /// Returns when the other side is gone, or the mount is.
  func run() {
    // Watched from here on: what the other side reads after the first report is no older.
    let (changes, refreshes) = (store.feed.watch(), store.wholeRefreshes())
    let tasks = [
      Task(executorPreference: Background.tasks) { [self] in
        for await change in changes { note(change) }
      },
      Task(executorPreference: Background.tasks) { [self] in
        for await _ in refreshes { note { $0.isEverything = true } }
      },
    ]
    defer { for task in tasks { task.cancel() } }
    while report(), channel.wait(or: isChanged) == .wake { isChanged.clear() }
  }

  private func note(_ change: Change) {
    switch change.subject {
    case .suite(let suite) where change.kind != .moved, .key(let suite, _) where change.kind != .moved:
      note { $0.suites.insert(suite) }
    case .suite, .key, .keychain, .everything: note { $0.isEverything = true }
    case .item, .otpauth, .document: break
    }
  }

  private func note(_ body: (inout Pending) -> Void) {
    let isFirst = pending.withLock { pending in
      let isFirst = pending.isEmpty
      body(&pending)
      if pending.suites.count > Self.limit { pending.isEverything = true }
      return isFirst
    }
    if isFirst { isChanged.wake() }
  }

  private func report() -> Bool {
    let news = pending.withLock { pending in
      defer { pending = Pending(isEverything: false) }
      return pending
    }
    return channel.send(.suites(.changed(news.isEverything ? nil : Array(news.suites))))
  }
}
