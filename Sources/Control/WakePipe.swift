import CLinux
import Glibc

/// Wakes a thread that waits for a connection: a pipe.
final class WakePipe: Sendable {
  /// Can be read after `ring`.
  let heard: Int32
  private let pulled: Int32

  init() {
    var ends: [Int32] = [-1, -1]
    _ = unsafe linux_pipe(&ends)
    (heard, pulled) = (ends[0], ends[1])
  }

  deinit {
    close(heard)
    close(pulled)
  }

  func ring() {
    var byte = UInt8(ascii: "\n")
    _ = unsafe write(pulled, &byte, 1)
  }

  /// After it was heard once.
  func rest() {
    var byte: UInt8 = 0
    _ = unsafe read(heard, &byte, 1)
  }
}
