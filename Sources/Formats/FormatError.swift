package import Model
public import SecretMemory

/// Why bytes can't be read or written as what they should be. It says where, and never holds a value.
public struct FormatError: Error, Hashable, Sendable {
  /// The fault and its place (line, record or offset), as a clause.
  public let reason: String
  /// The kind of the failure, for the exit code of a command.
  package var kind = Failure.Kind.failed

  /// `reason`: the fault and its place, as a clause without a value.
  public init(_ reason: String) {
    self.reason = reason
  }

  /// A secret that the store does not give; `path` is its path in the tree.
  package init(_ path: String, _ error: StoreError) {
    self.init("\(path): \(error.message)")
    kind = error.failureKind
  }

  /// Memory for secrets can't be allocated or locked (RLIMIT_MEMLOCK).
  public init(_ error: SecretMemoryError) {
    self.init("there is not enough locked memory; `ulimit -l` shows the limit")
  }
}
