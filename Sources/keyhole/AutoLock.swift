import Dispatch
import Store
import Tree

/// Locks the keychain when nobody has used a secret for some time (`auto-lock=`).
struct AutoLock {
  private let timer: any DispatchSourceTimer

  /// nil: never. Suspend counts, and setting a clock changes nothing.
  init?(_ tree: Tree, _ keychain: KeychainStore, after seconds: Int) {
    guard seconds > 0 else { return nil }
    timer = DispatchSource.makeTimerSource(queue: Background.queue)
    // It looks a few times while the time runs, for each use of a secret sets it back.
    let pace = DispatchTimeInterval.milliseconds(max(250, min(10_000, seconds * 250)))
    timer.schedule(deadline: .now() + pace, repeating: pace, leeway: .milliseconds(100))
    timer.setEventHandler {
      guard keychain.engine.lockState == .open, keychain.idleSeconds >= UInt64(seconds) else { return }
      try? tree.lock()
    }
    timer.activate()
  }

  func end() {
    timer.cancel()
  }
}
