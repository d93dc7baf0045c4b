import Model
import Platform
import Store
import Tree

/// Locks the keychain when no secret was used for some time (`auto-lock=`).
///
/// On a thread of its own: what else waits in this process must not keep the keychain open.
struct AutoLock {
  private let isEnded: WakePipe
  private let threads = WaitingThreads()

  /// Suspend counts, and setting a clock changes nothing.
  ///
  /// - Throws: `tooManyOpen` without a descriptor or a thread for it.
  init(_ tree: FileTree, _ keychain: KeychainStore, after seconds: Int) throws(StoreError) {
    let isEnded: WakePipe
    do throws(Errno) { isEnded = try WakePipe() } catch { throw StoreError(error, "pipe") }
    self.isEnded = isEnded
    // It looks a few times while the time runs, for each use of a secret sets it back.
    let pace = max(.milliseconds(250), min(.seconds(10), .seconds(seconds) / 4))
    let isTaken = threads.run {
      while !isEnded.wait(until: .now + pace) {
        guard keychain.engine.locking.lockState == .open, keychain.idleSeconds >= UInt64(seconds) else {
          continue
        }
        try? tree.lock()
      }
    }
    guard isTaken else { throw .tooManyOpen }
  }

  func end() {
    isEnded.wake()
  }
}
