/// Why a command, or a part of the process that serves a mount, could not do what it was asked.
///
/// It names what it is about and never holds a value. A command prints it as one line and ends with the exit code of its kind.
package struct Failure: Error {
  /// Kinds of failures that a script tells apart; the raw value is the command's exit code. 2 is a usage error.
  package enum Kind: Int32, Sendable {
    case failed = 1
    /// The path, the attribute or the mount does not exist.
    case notFound = 3
    /// The keychain is locked.
    case locked = 4
    /// A person, a rule or a wrong passphrase refused it.
    case refused = 5
  }

  /// A path, an option or a program; nil: the reason says all.
  package var subject: String?
  /// The failure, and where possible the remedy.
  package var reason: String
  package var kind: Kind

  package init(_ subject: String? = nil, _ reason: String, _ kind: Kind = .failed) {
    self.subject = subject
    self.reason = reason
    self.kind = kind
  }

  package init(_ subject: String, _ error: StoreError) {
    self.init(subject.isEmpty ? "/" : subject, error.message, error.failureKind)
  }
}

extension StoreError {
  /// The kind of failure that a command reports for this error.
  package var failureKind: Failure.Kind {
    switch self {
    case .notFound, .missingPart, .noSuchAttribute: .notFound
    case .locked: .locked
    case .accessDenied, .rejected, .revoked, .timedOut, .wouldWait: .refused
    default: .failed
    }
  }
}

extension String {
  /// The text, or where it is longer than 1,000 characters its beginning and its end: a message is one line.
  package var abbreviated: String {
    guard utf8.count > 1_000, count > 1_000 else { return self }
    return prefix(600) + "…" + suffix(300)
  }
}
