import CSystem
import Glibc

/// The other side of `ReplayProcess`: it repeats outside changes through the mount's path.
///
/// Its requests are known by its number and answered without a look at the stores. It holds nothing open in the mount
/// between two replays, and ends when its starter does.
package enum ReplayWorker {
  /// The channel between the starter and this process.
  static let channel: Int32 = 3

  /// Performs replays until the starter ends. `device`: `major:minor` of the mount, because something else may be at
  /// its path by now.
  package static func run(device: String, mountPoint: String) {
    // Above all the connection to the kernel, which has to be gone when the starter is.
    _ = linux_close_from(UInt32(Self.channel + 1))
    _ = unsafe linux_set_name("keyhole-echo")
    unsafe chdir("/")
    guard let stage = ReplayStage(device: device, mountPoint: mountPoint) else { return }
    var lines = LineReader(descriptor: Self.channel)
    while let line = lines.next() {
      stage.perform(line)
      var done = UInt8(ascii: "\n")
      guard unsafe write(Self.channel, &done, 1) == 1 else { return }
    }
  }
}
