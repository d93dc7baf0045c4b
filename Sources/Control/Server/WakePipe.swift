import CSystem
import Glibc

/// Wakes a thread that waits in poll(2).
package final class WakePipe: Sendable {
  /// Readable after `wake`.
  package let readEnd: Int32
  private let writeEnd: Int32

  package init() {
    var ends: [Int32] = [-1, -1]
    _ = unsafe linux_pipe(&ends)
    (readEnd, writeEnd) = (ends[0], ends[1])
    // A full pipe must not block the caller of `wake`.
    for end in ends { _ = fcntl(end, F_SETFL, O_NONBLOCK) }
  }

  deinit {
    close(readEnd)
    close(writeEnd)
  }

  package func wake() {
    var byte = UInt8(ascii: "\n")
    _ = unsafe write(writeEnd, &byte, 1)
  }

  /// Makes it not readable, until the next `wake`.
  package func clear() {
    var bytes: (UInt64, UInt64) = (0, 0)
    while unsafe read(readEnd, &bytes, 16) > 0 {}
  }

  /// False: it was not written to within so many milliseconds; -1: there is no limit.
  package func wait(milliseconds: Int32) -> Bool {
    var entry = pollfd(fd: readEnd, events: Int16(POLLIN), revents: 0)
    while true {
      // SAFETY: one live structure.
      let count = unsafe poll(&entry, 1, milliseconds)
      if count < 0, errno == EINTR { continue }
      return count > 0
    }
  }
}
