import KeychainSelection
import Platform
import Store

/// Notices that the mount is gone from this process's mount namespace.
///
/// The kernel keeps the file system, and its requests come, for as long as another mount namespace has a copy of the
/// mount (a container, `unshare --mount`) or a file is open after a lazy unmount. So the end of the requests does not tell.
struct MountPresence {
  private let isEnded: WakePipe
  private let threads = WaitingThreads()

  /// Calls `onGone` once, on a thread of its own. nil: the mount is not in the table, or there is no thread or descriptor.
  init?(_ mountPoint: String, _ onGone: @escaping @Sendable () -> Void) {
    guard let isEnded = try? WakePipe(), let table = try? MountTableFile(),
      let mount = table.mount(at: mountPoint), mount.type == "fuse.keyhole"
    else { return nil }
    self.isEnded = isEnded
    let isTaken = threads.run {
      if Self.waitForEnd(of: mount, table, isEnded) { onGone() }
    }
    guard isTaken else { return nil }
  }

  func end() {
    isEnded.wake()
    threads.finish()
  }

  /// Twice, as the table may change while it is read. A table that can't be read tells nothing.
  private static func isGone(_ mount: MountTable.Entry, _ table: MountTableFile) -> Bool {
    (0..<2).allSatisfy { _ in table.read()?.contains(mount) == false }
  }

  /// proc(5): poll(2) tells of a change of the table with POLLERR and POLLPRI. False: it is not looked for any more.
  private static func waitForEnd(
    of mount: MountTable.Entry, _ table: MountTableFile, _ isEnded: WakePipe
  ) -> Bool {
    while !isGone(mount, table) {
      let entries = [Poll.Entry(table.number, .priority), Poll.Entry(isEnded.readEnd)]
      guard let ready = try? Poll.wait(for: entries, until: nil), !ready[1] else { return false }
    }
    return true
  }
}

/// The open file of the mount table. poll(2) tells of each change since the open.
private final class MountTableFile: Sendable {
  private let file: Descriptor

  var number: Int32 { file.number }

  init() throws(Errno) {
    file = try Descriptor("/proc/self/mountinfo", .reading)
  }

  /// nil: it can't be read.
  func read() -> MountTable? { MountTable(reading: file) }

  func mount(at path: String) -> MountTable.Entry? { read()?.entry(at: path) }
}
