import Model
import Platform
import Store
import Synchronization
import Tree

/// Locks the keychain when no secret was used for some time (`auto-lock`).
///
/// On a thread of its own: what else waits in this process must not keep the keychain open.
final class AutoLock: Sendable {
  private let isNews: WakePipe
  private let hasEnded = Atomic(false)
  private let threads = WaitingThreads()
  private let following = Mutex<Task<Void, Never>?>(nil)

  /// Suspend counts, and setting a clock changes nothing.
  ///
  /// `seconds` gives the time that holds at the moment, 0: never. It is asked again after each change of the settings.
  /// - Throws: `tooManyOpen` without a descriptor or a thread for it.
  init(
    _ tree: FileTree, _ keychain: KeychainStore, _ feed: ChangeFeed,
    after seconds: @escaping @Sendable () -> Int
  ) throws(StoreError) {
    do throws(Errno) { isNews = try WakePipe() } catch { throw StoreError(error, "pipe") }
    let changes = feed.watch()
    let isTaken = threads.run { [self] in
      while let time = wait(for: seconds) {
        guard keychain.engine.locking.lockState == .open, keychain.idleSeconds >= UInt64(time) else {
          continue
        }
        try? tree.lock()
      }
    }
    guard isTaken else { throw .tooManyOpen }
    let task = Task(executorPreference: Background.tasks) { [weak self] in
      for await change in changes where change.mayBeOfConfiguration { self?.isNews.wake() }
    }
    following.withLock { $0 = task }
  }

  /// Returns when it is time to look, with the seconds after which the keychain is locked; nil: it has ended.
  private func wait(for seconds: () -> Int) -> Int? {
    while true {
      let time = seconds()
      // It looks a few times while the time runs, for each use of a secret sets it back.
      let pace = time > 0 ? max(.milliseconds(250), min(.seconds(10), .seconds(time) / 4)) : nil
      guard isNews.wait(until: pace.map { .now + $0 }) else { return time }
      guard !hasEnded.load(ordering: .acquiring) else { return nil }
      isNews.clear()
    }
  }

  func end() {
    hasEnded.store(true, ordering: .releasing)
    following.withLock { $0.take() }?.cancel()
    isNews.wake()
  }
}
