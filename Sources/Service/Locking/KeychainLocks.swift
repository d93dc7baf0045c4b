import Control
import KeychainSelection
import LoginSessions
import Model
import Platform
import Store

/// Reports that the keychain is locked, while a command holds a secret of it in clear.
///
/// Three ways lead there: the keychain itself says so (a Secret Service, or the keychain of a mount); a mount does, of a
/// vault that this process has opened by itself; or logind says that the session is locked or the machine goes to sleep,
/// which locks the keychain of a mount, and has nothing to lock where there is none. Sleep waits until `onLock` returns.
package final class KeychainLocks {
  private let own: StoreWatch
  private let mounts: [LockWatcher]
  private let listening: Task<Void, Never>
  private let threads = WaitingThreads()
  private let session: SessionWatch

  /// `onLock` is called on some thread, perhaps more than once.
  package init(_ stores: Stores, _ places: StoragePaths, onLock: @escaping @Sendable () -> Void) {
    let changes = stores.feed.watch()
    own = StoreWatch(stores, places)
    listening = Task(executorPreference: Background.tasks) {
      for await change in changes where change.kind == .locked { onLock() }
    }
    mounts = MountRegistration.serving(in: places.runtime).compactMap {
      LockWatcher($0.process, in: places.runtime, onLock: onLock)
    }
    session = SessionWatch(onThread: { [threads] in _ = threads.run($0) }) { news in
      switch news {
      case .locked, .sleeps: onLock()
      case .unlocked, .wakes: break
      }
    }
  }

  deinit {
    listening.cancel()
    session.end()
  }
}
