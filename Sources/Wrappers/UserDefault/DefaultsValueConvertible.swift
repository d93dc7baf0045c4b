/// A type that `@UserDefault` can store, through one that a suite can hold.
public protocol DefaultsValueConvertible {
  /// The stored form of a value.
  associatedtype DefaultsRepresentation: DefaultsValue

  init(defaultsRepresentation: DefaultsRepresentation) throws
  func defaultsRepresentation() throws -> DefaultsRepresentation

  /// Whether a value that is set instead of `previous` has to be stored.
  func hasChanged(from previous: Self) -> Bool
}

extension DefaultsValueConvertible {
  public func hasChanged(from previous: Self) -> Bool { true }
}

extension DefaultsValueConvertible where Self: Equatable {
  public func hasChanged(from previous: Self) -> Bool { self != previous }
}

/// A type that is stored through another one that can be stored, and so on.
public protocol IndirectDefaultsValueConvertible: DefaultsValueConvertible {
  associatedtype IndirectRepresentation: DefaultsValueConvertible
  where IndirectRepresentation.DefaultsRepresentation == DefaultsRepresentation

  init(indirectRepresentation: IndirectRepresentation) throws
  func indirectRepresentation() throws -> IndirectRepresentation
}

extension IndirectDefaultsValueConvertible {
  public init(defaultsRepresentation: DefaultsRepresentation) throws {
    try self.init(
      indirectRepresentation: IndirectRepresentation(defaultsRepresentation: defaultsRepresentation))
  }

  public func defaultsRepresentation() throws -> DefaultsRepresentation {
    try indirectRepresentation().defaultsRepresentation()
  }
}
