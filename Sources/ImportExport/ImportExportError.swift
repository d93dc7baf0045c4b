public import Formats
public import Model

/// Why something can't be imported or exported: what it is about, and the reason, for people.
public struct ImportExportError: Error, Sendable {
  /// A path of the tree or a file; nil: it is about the whole.
  public var subject: String?
  /// The failure and its remedy, as a clause.
  public var reason: String
  /// The kind of the failure, for the exit code of a command.
  package var kind = Failure.Kind.failed

  /// - Parameters:
  ///   - subject: a path of the tree or a file; nil: the whole.
  ///   - reason: what failed and what to do, as a clause.
  public init(_ subject: String? = nil, _ reason: String) {
    self.subject = subject
    self.reason = reason
  }

  /// Takes over the message of a store's error.
  public init(_ subject: String?, _ error: StoreError) {
    self.init(subject, error.message)
    kind = error.failureKind
  }

  /// Takes over a store's error before which nothing was changed.
  init(unchanged subject: String?, _ error: StoreError) {
    self.init(subject, "\(error.message); nothing was imported")
    kind = error.failureKind
  }

  /// The same error with words behind its reason.
  package func adding(_ words: String) -> ImportExportError {
    var error = self
    error.reason += words
    return error
  }

  /// Takes over the reason why bytes can't be read or written.
  public init(_ subject: String?, _ error: FormatError) {
    self.init(subject, error.reason)
    kind = error.kind
  }
}
