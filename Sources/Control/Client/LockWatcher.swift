import Model
import Platform
import Store
import Synchronization

/// Reports when the keychain of a mount is locked: by `keyhole lock`, by its `auto-lock=`, by the session's lock screen or
/// before a suspend.
///
/// That the mount ends is no lock. What ends with it is the passphrase, and then `MountedKeychain` is locked.
package final class LockWatcher: Sendable {
  private let channel: MessageChannel
  private let threads = WaitingThreads()

  /// Returns when the present state is known. `onLock` is called on a thread of its own each time that the keychain is
  /// locked from then on. nil: the mount does not answer within two seconds, or has no keychain.
  package init?(_ process: Int32, in folder: String, onLock: @escaping @Sendable () -> Void) {
    guard
      let channel = try? ControlClient.connect(to: process, in: folder, identified: true, patience: 2),
      channel.send(.watch), let first = Self.nextState(channel)
    else { return nil }
    self.channel = channel
    let isTaken = threads.run {
      var state = first
      while channel.wait() == .input, let next = Self.nextState(channel) {
        if state.lock == .open, next.lock != .open { onLock() }
        state = next
      }
    }
    guard isTaken else { return nil }
  }

  deinit { channel.shut() }

  /// The next state; items that come before it are dropped. nil: the connection has ended.
  private static func nextState(_ channel: MessageChannel) -> KeychainState? {
    while true {
      guard let message = try? channel.receive() else { return nil }
      switch message.content {
      case .state(let state): return state
      case .failed: return nil
      default: continue
      }
    }
  }
}
