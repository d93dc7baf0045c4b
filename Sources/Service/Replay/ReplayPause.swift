package import Control
import KeychainSelection

/// A mount's process that does nothing in its own tree, for as long as this lives.
///
/// Its calls there, which replay outside changes for watchers, end in less than a millisecond, but umount2(2) would
/// find the mount in use.
package struct ReplayPause: ~Copyable {
  /// In seconds.
  private static let patience = 5

  /// Its end resumes the replay.
  private let channel: MessageChannel

  /// Returns when the replay is paused; nil where the process can't be asked, as by another user.
  package init?(_ mount: MountRegistration, _ places: StoragePaths) {
    let channel = try? ControlClient.connect(
      to: mount.process, in: places.runtime, identified: false, patience: Self.patience)
    guard let channel, channel.send(.pauseReplay), let reply = try? channel.reply(),
      reply.content == .replayPaused
    else { return nil }
    self.channel = channel
  }

  deinit { channel.shut() }
}
