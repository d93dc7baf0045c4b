public import Formats
public import Model

/// Why something can't be imported or exported: what it is about, and the reason, for people.
public struct ImportExportError: Error, Sendable {
  /// A path of the tree or a file; nil: it is about the whole.
  public var subject: String?
  public var reason: String

  public init(_ subject: String? = nil, _ reason: String) {
    self.subject = subject
    self.reason = reason
  }

  public init(_ subject: String?, _ error: StoreError) {
    self.init(subject, error.message)
  }

  public init(_ subject: String?, _ error: FormatError) {
    self.init(subject, error.reason)
  }
}
