package import Model

/// A stored value does not read as the type that a wrapper declares. It names types, never the value.
public struct SettingMismatch: Error, Hashable, Sendable, CustomStringConvertible {
  /// The stored value's type, as `user.keyhole.type` spells it.
  public let found: String
  /// The expected type.
  public let expected: String
  /// Where inside the value, for a part of an array or a dictionary.
  public let path: String

  package init(_ found: SettingValue, expected: Any.Type, path: String = "") {
    self.init(found: found.type.rawValue, expected: "\(expected)", path: path)
  }

  package init(found: String, expected: String, path: String = "") {
    self.found = found
    self.expected = expected
    self.path = path
  }

  /// The stored type, the place inside the value, and the expected type, in words.
  public var description: String {
    "\(found)\(path.isEmpty ? "" : " at \(path)") does not read as \(expected)"
  }
}
