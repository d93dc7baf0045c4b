import Glibc
import Model

/// write(2) to standard output, until everything is out.
///
/// A failed write ends the process with exit code 1: a script must not take half for the whole.
enum StandardOutput {
  static func write(_ text: String) { unsafe Array(text.utf8).withUnsafeBytes { unsafe write($0) } }

  /// Output for people ends in a line feed; a value is written as it is.
  static func print(_ line: String) { write(line + "\n") }

  static func write(_ bytes: UnsafeRawBufferPointer) {
    let error = unsafe writeAll(bytes, to: STDOUT_FILENO)
    guard error != 0 else { return }
    StandardError.write("keyhole: standard output can't be written: \(systemMessage(error))\n")
    exit(1)
  }
}

enum StandardError {
  /// Lines for people: what is not visible in them is escaped.
  static func write(_ text: String) {
    let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
    draw(lines.map { String($0).visible }.joined(separator: "\n"))
  }

  /// Text that steers the terminal. It holds no name, and nothing that was read.
  static func draw(_ text: String) {
    _ = unsafe Array(text.utf8).withUnsafeBytes { unsafe writeAll($0, to: STDERR_FILENO) }
  }
}

/// Returns 0, or errno(3).
private func writeAll(_ bytes: UnsafeRawBufferPointer, to descriptor: Int32) -> Int32 {
  var rest = unsafe bytes[...]
  while unsafe !rest.isEmpty {
    // SAFETY: the slice says how long it is.
    let count = unsafe write(descriptor, UnsafeRawBufferPointer(rebasing: rest).baseAddress, rest.count)
    guard count > 0 || errno == EINTR else { return errno }
    unsafe rest = unsafe rest.dropFirst(max(count, 0))
  }
  return 0
}

extension String {
  /// As it is for programs, escaped for people: what a line of standard output has of names.
  var forStandardOutput: String { isatty(STDOUT_FILENO) == 1 ? escapedForTerminal : self }

  /// The same of a JSON text.
  var jsonForStandardOutput: String { isatty(STDOUT_FILENO) == 1 ? visibleAsJSON : self }
}
