import Platform

/// The other side of `ReplayProcess`: it repeats outside changes through the mount's path.
///
/// Its requests are known by its number and answered without a look at the stores. It holds nothing open in the mount
/// between two replays, and ends when its starter does.
package enum ReplayWorker {
  /// The channel between the starter and this process.
  static let channel: Int32 = 3
  /// The sign that a replay is performed.
  static let done: [UInt8] = [UInt8(ascii: "\n")]

  /// Performs replays until the starter ends. `device`: `major:minor` of the mount, because something else may be at
  /// its path by now.
  package static func run(device: String, mountPoint: String) {
    // Above all the connection to the kernel, which has to be gone when the starter is.
    CurrentProcess.closeDescriptors(from: UInt32(Self.channel + 1))
    CurrentProcess.setName("keyhole-echo")
    CurrentProcess.leaveFolder()
    guard let stage = ReplayStage(device: device, mountPoint: mountPoint) else { return }
    let socket = StreamSocket(Descriptor(owning: Self.channel))
    var lines = LineReader(socket)
    while let line = lines.next() {
      stage.perform(line)
      guard (try? socket.send(done.span, until: .now + .seconds(60))) != nil else { return }
    }
  }
}
