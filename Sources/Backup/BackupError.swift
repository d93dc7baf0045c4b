public import Formats
public import Model

/// Why a backup can't be written, read or restored: what it is about, and the reason, for people.
public struct BackupError: Error, Hashable, Sendable {
  /// A file or a folder; nil: it is about the whole.
  public var subject: String?
  /// The failure and its remedy, as a clause.
  public var reason: String
  /// The kind of the failure, for the exit code of a command.
  package var kind = Failure.Kind.failed

  /// - Parameters:
  ///   - subject: a file or folder; nil: the whole.
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

  /// Takes over the reason why bytes can't be read or written.
  public init(_ subject: String?, _ error: FormatError) {
    self.init(subject, error.reason)
    kind = error.kind
  }

  /// Any error of the parts that a backup is made of. `subject`: where the error names none.
  init(about subject: String, _ error: any Error) {
    switch error {
    case let error as BackupError:
      self = error
      self.subject = error.subject ?? subject
    case let error as FormatError: self.init(subject, error)
    case let error as StoreError: self.init(subject, error)
    default: self.init(subject, "there is not enough locked memory; `ulimit -l` shows the limit")
    }
  }
}

/// Runs `body`, and names `subject` in its errors.
func attempt<Value: ~Copyable>(_ subject: String, _ body: () throws -> Value) throws(BackupError) -> Value {
  do { return try body() } catch { throw BackupError(about: subject, error) }
}
