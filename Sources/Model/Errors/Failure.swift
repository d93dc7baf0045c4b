/// Why a command, or a part of the process that serves a mount, could not do what it was asked.
///
/// It names what it is about and never holds a value. A command prints it as one line and ends with exit code 1.
package struct Failure: Error {
  /// A path, an option or a program; nil: the reason says all.
  package var subject: String?
  /// The failure, and where possible the remedy.
  package var reason: String

  package init(_ subject: String? = nil, _ reason: String) {
    self.subject = subject
    self.reason = reason
  }

  package init(_ subject: String, _ error: StoreError) {
    self.init(subject.isEmpty ? "/" : subject, error.message)
  }
}

extension String {
  /// The text, or where it is longer than 1,000 characters its beginning and its end: a message is one line.
  package var abbreviated: String {
    guard utf8.count > 1_000, count > 1_000 else { return self }
    return prefix(600) + "…" + suffix(300)
  }
}
