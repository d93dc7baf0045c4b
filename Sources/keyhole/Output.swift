import Glibc

/// write(2) to standard output, until everything is out.
///
/// What can't be written ends the process with exit code 1: a script must not take half for the whole.
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
  static func write(_ text: String) {
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
  /// What may be shown of a name or a reason at once.
  private static let longest = 400

  /// Without what would steer a terminal or can't be seen there: control characters (C1 too), marks that turn the
  /// writing direction, letters without a shape. What is longer than 400 characters is cut.
  ///
  /// Everything that comes from a file, a store or another program passes here before it is shown to a person.
  var escapedForTerminal: String {
    let scalars = unicodeScalars.prefix(Self.longest)
    let text = String(
      scalars.flatMap { scalar -> [Character] in
        scalar.isSafeOnTerminal ? [Character(scalar)] : Array("\\u{\(String(scalar.value, radix: 16))}")
      })
    return scalars.endIndex == unicodeScalars.endIndex ? text : text + "…"
  }

  /// As it is for programs, escaped for people: what a line of standard output has of names.
  var forStandardOutput: String { isatty(STDOUT_FILENO) == 1 ? escapedForTerminal : self }
}

extension Unicode.Scalar {
  fileprivate var isSafeOnTerminal: Bool {
    switch properties.generalCategory {
    case .control, .format, .lineSeparator, .paragraphSeparator, .unassigned, .privateUse, .surrogate: false
    // Fillers, such as U+3164. Variation selectors are part of what is seen.
    default: !properties.isDefaultIgnorableCodePoint || properties.isVariationSelector
    }
  }
}
