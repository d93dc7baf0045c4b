import Glibc
package import Model

/// An error whose text may be logged: it names places, types and reasons, never a value.
package protocol LoggedError: Error {
  var logText: String { get }
}

extension StoreError: LoggedError {
  package var logText: String { message }
}

extension SettingMismatch: LoggedError {
  package var logText: String { description }
}

/// One line on standard error for what a wrapper can't throw. It names places and reasons, never a value.
package enum Log {
  package static func note(_ subject: String, _ reason: String) {
    let bytes = Array(line(subject, reason).utf8)
    // SAFETY: the buffer says how long it is.
    _ = unsafe bytes.withUnsafeBytes { unsafe write(STDERR_FILENO, $0.baseAddress, $0.count) }
  }

  /// Of an error whose text may hold a value, its type is logged.
  package static func note(_ subject: String, _ error: any Error) {
    note(subject, (error as? any LoggedError)?.logText ?? "\(type(of: error))")
  }

  package static func line(_ subject: String, _ reason: String) -> String {
    "keyhole: \(escaped(subject)): \(escaped(reason))\n"
  }

  /// Names may hold anything: a line feed would forge a line, an escape sequence change a terminal.
  private static func escaped(_ text: String) -> String {
    guard text.unicodeScalars.contains(where: isInvisible) else { return text }
    return text.unicodeScalars.map { isInvisible($0) ? "\\u{\(String($0.value, radix: 16))}" : String($0) }
      .joined()
  }

  private static func isInvisible(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar.properties.generalCategory {
    case .control, .format, .lineSeparator, .paragraphSeparator: true
    default: false
    }
  }
}
