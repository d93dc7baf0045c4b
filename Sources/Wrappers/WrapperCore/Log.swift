package import Model
import Platform

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
    try? Files.write(line(subject, reason).utf8.span, to: StandardStream.errors.number)
  }

  /// Of an error whose text may hold a value, its type is logged.
  package static func note(_ subject: String, _ error: any Error) {
    note(subject, (error as? any LoggedError)?.logText ?? "\(type(of: error))")
  }

  /// A line feed in a name would forge a line, and an escape sequence change a terminal.
  package static func line(_ subject: String, _ reason: String) -> String {
    "keyhole: \(subject.visible): \(reason.visible)\n"
  }
}
