import CLinux
import Glibc
import Keychains

/// A mount's process that does nothing in its own tree, for as long as this lives.
///
/// What it does there, to tell watchers of outside changes, is over in less than a millisecond, but umount2(2) would
/// find the mount in use.
struct MountRest: ~Copyable {
  static let word = "rest"

  private let connection: Int32

  /// Returns when it rests; nil where it can't be asked, as by another user.
  init?(_ mount: MountRecord, _ places: Places) {
    let connection = unsafe linux_connect(
      ControlSocket.path(of: mount.process, places), ControlSocket.patience)
    guard connection >= 0 else { return nil }
    let line = Array((Self.word + "\n").utf8)
    // SAFETY: the buffers say how long they are. MSG_NOSIGNAL: it may be gone.
    let sent = unsafe line.withUnsafeBytes {
      unsafe send(connection, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
    }
    var answer = pollfd(fd: connection, events: Int16(POLLIN), revents: 0)
    var byte: UInt8 = 0
    guard sent == line.count, unsafe poll(&answer, 1, 1_000) == 1, unsafe read(connection, &byte, 1) == 1
    else {
      close(connection)
      return nil
    }
    self.connection = connection
  }

  deinit { close(connection) }
}
