import Control
import Keychains
import Model
import Store

/// Reports that the keychain is locked, while a command holds a secret of it in clear.
///
/// Two ways lead there: the keychain itself says so (a Secret Service, or the keychain of a mount), or a mount does, of a
/// vault that this process has opened by itself.
final class KeychainLocks {
  private let own: StoreWatch
  private let mounts: [LockWatcher]
  private let listening: Task<Void, Never>

  /// `onLock` is called on some thread, perhaps more than once.
  init(_ stores: Stores, _ places: Places, onLock: @escaping @Sendable () -> Void) {
    let changes = stores.feed.watch()
    own = StoreWatch(stores, places)
    listening = Task(executorPreference: Background.tasks) {
      for await change in changes where change.kind == .locked { onLock() }
    }
    mounts = MountRecord.all(in: places.runtime).filter(\.isAlive).compactMap {
      LockWatcher($0.process, in: places.runtime, onLock: onLock)
    }
  }

  deinit { listening.cancel() }
}
