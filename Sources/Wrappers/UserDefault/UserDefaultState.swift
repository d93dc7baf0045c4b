extension UserDefault {
  /// The wrapper for what SwiftUI calls a view: code that reads it under Observation is notified of every change, and
  /// `$property` is a binding.
  @propertyWrapper
  public struct State {
    private let base: UserDefault<Value>

    /// The suite of the program holds the key; `wrappedValue` is the default.
    public init(wrappedValue: Value, _ key: String) {
      base = UserDefault(wrappedValue: wrappedValue, key)
    }

    /// The suite of the program holds the key; the default is nil.
    public init(_ key: String) where Value: ExpressibleByNilLiteral {
      base = UserDefault(key)
    }

    /// The stored value, or the default, as with `@UserDefault`.
    public var wrappedValue: Value {
      get { base.wrappedValue }
      nonmutating set { base.wrappedValue = newValue }
    }

    /// A binding that reads and stores the value.
    public var projectedValue: Binding<Value> {
      Binding(get: { [base] in base.wrappedValue }, set: { [base] in base.wrappedValue = $0 })
    }
  }
}

/// A value that is kept somewhere else: SwiftUI's type of that name, as far as it makes sense without views.
@propertyWrapper
@dynamicMemberLookup
public struct Binding<Value> {
  private let get: () -> Value
  private let set: (Value) -> Void

  /// A binding over two functions, which it calls for every reading and setting, on the caller's thread.
  public init(get: @escaping () -> Value, set: @escaping (Value) -> Void) {
    self.get = get
    self.set = set
  }

  /// The value as `get` returns it now. Setting calls `set`.
  public var wrappedValue: Value {
    get { get() }
    nonmutating set { set(newValue) }
  }

  /// The binding itself, so that `$property` can be passed on.
  public var projectedValue: Binding<Value> { self }

  /// A part of the value.
  public subscript<Part>(dynamicMember keyPath: WritableKeyPath<Value, Part>) -> Binding<Part> {
    Binding<Part>(
      get: { wrappedValue[keyPath: keyPath] },
      set: { part in
        var value = wrappedValue
        value[keyPath: keyPath] = part
        wrappedValue = value
      })
  }

  /// A binding that never changes.
  public static func constant(_ value: Value) -> Binding<Value> {
    Binding(get: { value }, set: { _ in })
  }
}
