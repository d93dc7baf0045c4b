import Control
import Platform
import Store
import Tree

/// Locks the keychain when no secret was used for some time (`auto-lock=`).
///
/// On a thread of its own: what else waits in this process must not keep the keychain open.
struct AutoLock {
  private let isEnded = WakePipe()
  private let threads = WaitingThreads()

  /// nil: never, or no thread can be made. Suspend counts, and setting a clock changes nothing.
  init?(_ tree: FileTree, _ keychain: KeychainStore, after seconds: Int) {
    guard seconds > 0 else { return nil }
    // It looks a few times while the time runs, for each use of a secret sets it back.
    let pace = Int32(clamping: max(250, min(10_000, seconds * 250)))
    let isTaken = threads.run { [isEnded] in
      while !isEnded.wait(milliseconds: pace) {
        guard keychain.engine.locking.lockState == .open, keychain.idleSeconds >= UInt64(seconds) else {
          continue
        }
        try? tree.lock()
      }
    }
    guard isTaken else { return nil }
  }

  func end() {
    isEnded.wake()
  }
}
