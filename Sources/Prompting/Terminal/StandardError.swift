import Glibc
import Model

/// Messages for the person who runs a command.
package enum StandardError {
  /// Lines for people: what is not visible in them is escaped.
  package static func write(_ text: String) {
    let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
    draw(lines.map { String($0).visible }.joined(separator: "\n"))
  }

  /// Text that steers the terminal. It holds no name, and nothing that was read.
  package static func draw(_ text: String) {
    _ = unsafe Array(text.utf8).withUnsafeBytes { unsafe writeAll($0, to: STDERR_FILENO) }
  }
}

/// write(2) until everything is out. Returns 0, or errno(3).
package func writeAll(_ bytes: UnsafeRawBufferPointer, to descriptor: Int32) -> Int32 {
  var rest = unsafe bytes[...]
  while unsafe !rest.isEmpty {
    // SAFETY: the slice says how long it is.
    let count = unsafe write(descriptor, UnsafeRawBufferPointer(rebasing: rest).baseAddress, rest.count)
    guard count > 0 || errno == EINTR else { return errno }
    unsafe rest = unsafe rest.dropFirst(max(count, 0))
  }
  return 0
}
