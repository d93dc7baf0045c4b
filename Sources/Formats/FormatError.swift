public import SecretMemory

/// Why bytes can't be read or written as what they should be. It says where, and never holds a value.
public struct FormatError: Error, Hashable, Sendable {
  public let reason: String

  public init(_ reason: String) {
    self.reason = reason
  }

  public init(_ error: SecretMemoryError) {
    self.init("there is not enough locked memory; `ulimit -l` shows the limit")
  }
}
