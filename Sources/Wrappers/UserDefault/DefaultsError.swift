import WrapperCore

/// Why a stored value could not be loaded, or one not be saved.
public enum DefaultsError: Error, CustomStringConvertible, @unchecked Sendable {
  // It carries a property list value: a copy that is not changed.
  /// The stored value has another type.
  case typeMismatch(found: Any, expected: Any.Type)
  /// The stored value has the right type and stands for no value.
  case illegalValue(found: Any, for: Any.Type)
  /// Nothing is stored.
  case missingValue(key: String)

  /// It names types, never the value, which may not be meant for a log.
  public var description: String {
    switch self {
    case .typeMismatch(let found, let expected): "\(type(of: found)) does not read as \(expected)"
    case .illegalValue(let found, let type): "what is stored as \(Swift.type(of: found)) is no \(type)"
    case .missingValue(let key): "nothing is stored under \(key)"
    }
  }
}

extension DefaultsError: LoggedError {
  package var logText: String { description }
}
