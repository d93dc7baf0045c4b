import LoginSessions
import Platform
import SecretMemory
import Store
import Synchronization
import Tree

/// Locks the vault with the user's session and before the machine sleeps, where logind tells.
///
/// A vault that was locked so opens again with the session, unless it takes a passphrase, or a person would be asked for
/// it. A Secret Service is locked, too, and asks by itself when it is unlocked. The machine waits with its sleep until it is done.
final class SessionLock: Sendable {
  private struct State {
    var isSessionLocked = false
    var isAsleep = false
    /// By this, and not by a person.
    var isLockedHere = false
  }

  private let tree: FileTree
  private let keychain: KeychainStore
  private let state = Mutex(State())
  private let watch = Mutex<SessionWatch?>(nil)
  private let threads = WaitingThreads()

  init(_ tree: FileTree, _ keychain: KeychainStore) {
    (self.tree, self.keychain) = (tree, keychain)
    watch.withLock {
      $0 = SessionWatch(onThread: { [threads] in _ = threads.run($0) }) { [weak self] news in self?.take(news)
      }
    }
  }

  func end() {
    watch.withLock { $0.take() }?.end()
  }

  /// Why no session is known in which a person could be asked for plain consent; nil: logind answers.
  var missingLogind: String? { watch.withLock { $0?.failure } }

  /// For `keyhole status`.
  var description: String {
    let (failure, delayFailure) = watch.withLock { ($0?.failure, $0?.delayFailure) }
    if let failure { return "only `keyhole lock` and auto-lock=, because \(failure)" }
    let suspend = delayFailure.map { "does not wait for it: \($0)" } ?? "waits for it"
    return "the session's lock screen, and suspend, which \(suspend)"
  }

  private func take(_ news: SessionWatch.News) {
    let asksNothing = state.withLock { state in
      switch news {
      case .locked: state.isSessionLocked = true
      case .unlocked: state.isSessionLocked = false
      case .sleeps: state.isAsleep = true
      case .wakes: state.isAsleep = false
      }
      return state.isSessionLocked || state.isAsleep
    }
    // Before the lock, so that no passphrase that is typed now opens the keychain again.
    if asksNothing { keychain.unlocking?.pause() } else { keychain.unlocking?.resume() }
    switch news {
    case .locked, .sleeps: lock()
    case .unlocked, .wakes: unlock()
    }
  }

  private func lock() {
    // Of a keychain in another process the last report may be old.
    guard keychain.mayBlock || keychain.engine.locking.lockState != .locked else { return }
    state.withLock { $0.isLockedHere = true }
    try? tree.lock()
  }

  private func unlock() {
    let isWanted = state.withLock { state in
      guard state.isLockedHere, !state.isSessionLocked else { return false }
      state.isLockedHere = false
      return true
    }
    guard isWanted, keychain.engine.locking.lockState != .open, !keychain.mayBlock,
      !keychain.engine.locking.needsPassphrase
    else { return }
    guard let none = try? SecretBytes() else { return }
    try? keychain.unlock(none)
  }
}
