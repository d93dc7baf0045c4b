import Glibc

/// write(2) until everything is out.
enum StandardOutput {
  static func write(_ text: String) { writeAll(Array(text.utf8), to: STDOUT_FILENO) }

  /// Output for people ends in a line feed; a value is written as it is.
  static func print(_ line: String) { write(line + "\n") }

  static func write(_ bytes: UnsafeRawBufferPointer) { unsafe writeAll(bytes, to: STDOUT_FILENO) }
}

enum StandardError {
  static func write(_ text: String) { writeAll(Array(text.utf8), to: STDERR_FILENO) }
}

private func writeAll(_ bytes: [UInt8], to descriptor: Int32) {
  unsafe bytes.withUnsafeBytes { unsafe writeAll($0, to: descriptor) }
}

private func writeAll(_ bytes: UnsafeRawBufferPointer, to descriptor: Int32) {
  var rest = unsafe bytes[...]
  while unsafe !rest.isEmpty {
    // SAFETY: the slice says how long it is.
    let count = unsafe write(descriptor, UnsafeRawBufferPointer(rebasing: rest).baseAddress, rest.count)
    guard count > 0 || errno == EINTR else { return }
    unsafe rest = unsafe rest.dropFirst(max(count, 0))
  }
}

extension String {
  /// Without what would steer a terminal: control characters and marks that turn the writing direction.
  var escapedForTerminal: String {
    String(
      unicodeScalars.flatMap { scalar -> [Character] in
        scalar.isSafeOnTerminal ? [Character(scalar)] : Array("\\u{\(String(scalar.value, radix: 16))}")
      })
  }
}

extension Unicode.Scalar {
  fileprivate var isSafeOnTerminal: Bool {
    switch properties.generalCategory {
    case .control, .format, .lineSeparator, .paragraphSeparator: false
    default: true
    }
  }
}
