/// A type that `@UserDefault` can store, through one that a suite can hold.
public protocol DefaultsValueConvertible {
  /// The stored form of a value.
  associatedtype DefaultsRepresentation: DefaultsValue

  /// Makes the value from its stored form. - Throws: an error that the property wrapper then has as its `error`.
  init(defaultsRepresentation: DefaultsRepresentation) throws
  /// The form that is stored. - Throws: an error that the property wrapper then has as its `error`; nothing is stored.
  func defaultsRepresentation() throws -> DefaultsRepresentation

  /// Whether a value that is set instead of `previous` has to be stored.
  func hasChanged(from previous: Self) -> Bool
}

extension DefaultsValueConvertible {
  /// true: values that can't be compared are always stored.
  public func hasChanged(from previous: Self) -> Bool { true }
}

extension DefaultsValueConvertible where Self: Equatable {
  /// Whether the values differ: setting an equal value stores nothing.
  public func hasChanged(from previous: Self) -> Bool { self != previous }
}

/// A type that is stored through another one, which is stored through a third.
public protocol IndirectDefaultsValueConvertible: DefaultsValueConvertible {
  /// The type that stands between this one and its stored form.
  associatedtype IndirectRepresentation: DefaultsValueConvertible
  where IndirectRepresentation.DefaultsRepresentation == DefaultsRepresentation

  /// Makes the value from the type in between.
  init(indirectRepresentation: IndirectRepresentation) throws
  /// The value as the type in between.
  func indirectRepresentation() throws -> IndirectRepresentation
}

extension IndirectDefaultsValueConvertible {
  /// Reads the intermediate value, and makes this one from it. - Throws: what either throws.
  public init(defaultsRepresentation: DefaultsRepresentation) throws {
    try self.init(
      indirectRepresentation: IndirectRepresentation(defaultsRepresentation: defaultsRepresentation))
  }

  /// The stored form of the intermediate value. - Throws: what making or storing it throws.
  public func defaultsRepresentation() throws -> DefaultsRepresentation {
    try indirectRepresentation().defaultsRepresentation()
  }
}
