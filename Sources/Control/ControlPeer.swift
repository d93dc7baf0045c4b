import CLinux
import Glibc
import Model
import Store

/// The process that made a connection, as it was identified before it could send a request.
///
/// A connection outlives what its process was: the process may start another program (execve(2)) that rules let in, or
/// hand the connection to one. So the process is identified before it gets the number that its requests have to repeat,
/// its requests count only when they come from it, and it is identified again when it is decided about and before each
/// reply with a secret.
package final class ControlPeer: Sendable {
  /// Its number; 0: it is in another namespace.
  let process: Int32
  private let identity: Asker?
  /// A descriptor of the process, not of its number; -1: the kernel has none.
  private let descriptor: Int32

  /// Identifies the process at the other end of a connection.
  init(_ connection: Int32) {
    process = linux_peer_process(connection)
    descriptor = linux_peer_descriptor(connection)
    identity = Asker(thread: process)
  }

  deinit {
    if descriptor >= 0 { close(descriptor) }
  }

  /// The process as it is now; nil: it can't be identified, or is not what it was.
  func current() -> Asker? {
    guard let identity, isAlive, let now = Asker(thread: process), now.isSameProgram(as: identity) else {
      return nil
    }
    return now
  }

  /// - Throws: `accessDenied` where the process has ended or runs another program than when it was identified.
  func check() throws(StoreError) {
    guard identity == nil || current() != nil else {
      throw .accessDenied(reason: "the process that asked has ended, or runs another program now")
    }
  }

  private var isAlive: Bool {
    guard descriptor >= 0 else { return true }
    var entry = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
    // SAFETY: one live structure. A descriptor of a process is readable once the process has ended.
    return unsafe poll(&entry, 1, 0) == 0
  }
}

extension Asker {
  fileprivate func isSameProgram(as other: Asker) -> Bool {
    process == other.process && programFile == other.programFile && user == other.user
  }
}
