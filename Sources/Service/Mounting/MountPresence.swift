import Control
import Glibc
import KeychainSelection
import Platform
import Store

/// Notices that the mount is gone from this process's mount namespace.
///
/// The kernel keeps the file system, and its requests come, for as long as another mount namespace has a copy of the
/// mount (a container, `unshare --mount`) or a file is open after a lazy unmount. So the end of the requests does not tell.
struct MountPresence {
  private let isEnded = WakePipe()
  private let threads = WaitingThreads()

  /// Calls `onGone` once, on a thread of its own. nil: the mount is not in the table, or there is no thread.
  init?(_ mountPoint: String, _ onGone: @escaping @Sendable () -> Void) {
    // SAFETY: a variadic call without its variable part.
    let table = unsafe open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC)
    guard table >= 0 else { return nil }
    // Read after the open: poll(2) tells of each change since then.
    guard let mount = MountTable(reading: table)?.entry(at: mountPoint), mount.type == "fuse.keyhole" else {
      close(table)
      return nil
    }
    let isTaken = threads.run { [isEnded] in
      let isGone = Self.waitForEnd(of: mount, table, isEnded)
      close(table)
      if isGone { onGone() }
    }
    guard isTaken else {
      close(table)
      return nil
    }
  }

  func end() {
    isEnded.wake()
    threads.finish()
  }

  /// Twice, as the table may change while it is read. A table that can't be read tells nothing.
  private static func isGone(_ mount: MountTable.Entry, _ table: Int32) -> Bool {
    (0..<2).allSatisfy { _ in MountTable(reading: table)?.contains(mount) == false }
  }

  /// proc(5): poll(2) tells of a change of the table with POLLERR and POLLPRI. False: it is not looked for any more.
  private static func waitForEnd(of mount: MountTable.Entry, _ table: Int32, _ isEnded: WakePipe) -> Bool {
    while !isGone(mount, table) {
      var entries = [
        pollfd(fd: table, events: Int16(POLLPRI), revents: 0),
        pollfd(fd: isEnded.readEnd, events: Int16(POLLIN), revents: 0),
      ]
      // SAFETY: the array says how long it is.
      guard unsafe poll(&entries, nfds_t(entries.count), -1) >= 0 || errno == EINTR else { return false }
      if entries[1].revents != 0 { return false }
    }
    return true
  }
}
