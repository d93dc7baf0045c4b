public import Foundation

/// A type that `@FoilDefaultStorage` can store.
///
/// Every property list type conforms, with arrays, sets and dictionaries of them, and so do numbers of every
/// width, `URL`, `UUID` and `Decimal`. A type that is `RawRepresentable`, `Codable` or an `NSObject` with `NSCoding`
/// conforms with no more than the declaration.
public protocol UserDefaultsSerializable {
  /// The stored type: one of property lists, optional where there may be nothing to store.
  associatedtype StoredValue

  /// The stored form of this value.
  var storedValue: StoredValue { get }

  /// The value that was stored so; nil: it does not read as this type.
  init?(storedValue: StoredValue)
}

/// Types that are stored as they are.
public protocol StoredAsItself: UserDefaultsSerializable where StoredValue == Self {}

extension StoredAsItself {
  /// The value itself, which is a type of property lists or stored as one.
  public var storedValue: Self { self }
  /// Takes the stored value unchanged.
  public init(storedValue: Self) { self = storedValue }
}

extension Bool: StoredAsItself {}
extension Int: StoredAsItself {}
extension Int8: StoredAsItself {}
extension Int16: StoredAsItself {}
extension Int32: StoredAsItself {}
extension Int64: StoredAsItself {}
extension UInt: StoredAsItself {}
extension UInt8: StoredAsItself {}
extension UInt16: StoredAsItself {}
extension UInt32: StoredAsItself {}
extension UInt64: StoredAsItself {}
extension Float: StoredAsItself {}
extension Double: StoredAsItself {}
extension String: StoredAsItself {}
extension URL: StoredAsItself {}
extension UUID: StoredAsItself {}
extension Date: StoredAsItself {}
extension Data: StoredAsItself {}
extension Decimal: StoredAsItself {}

extension Array: UserDefaultsSerializable where Element: UserDefaultsSerializable {
  /// The stored forms of the elements, in order.
  public var storedValue: [Element.StoredValue] { map(\.storedValue) }

  /// nil where an element does not read as one: what would be left out could be overwritten.
  public init?(storedValue: [Element.StoredValue]) {
    let elements = storedValue.compactMap(Element.init(storedValue:))
    guard elements.count == storedValue.count else { return nil }
    self = elements
  }
}

extension Set: UserDefaultsSerializable where Element: UserDefaultsSerializable {
  /// The stored forms of the elements, in no particular order.
  public var storedValue: [Element.StoredValue] { map(\.storedValue) }

  /// nil where an element does not read as one. Equal elements become one.
  public init?(storedValue: [Element.StoredValue]) {
    guard let elements = [Element](storedValue: storedValue) else { return nil }
    self = Set(elements)
  }
}

extension Dictionary: UserDefaultsSerializable where Key == String, Value: UserDefaultsSerializable {
  /// The stored forms of the values, under the same keys.
  public var storedValue: [String: Value.StoredValue] { mapValues(\.storedValue) }

  /// nil where a value does not read as one: what would be left out could be overwritten.
  public init?(storedValue: [String: Value.StoredValue]) {
    let entries = storedValue.compactMapValues(Value.init(storedValue:))
    guard entries.count == storedValue.count else { return nil }
    self = entries
  }
}

extension Optional: UserDefaultsSerializable where Wrapped: UserDefaultsSerializable {
  /// The stored form of the wrapped value; nil: nothing is stored.
  public var storedValue: Wrapped.StoredValue? { map(\.storedValue) }

  /// `.none` for nil; nil where a stored value does not read as `Wrapped`.
  public init?(storedValue: Wrapped.StoredValue?) {
    guard let storedValue else {
      self = .none
      return
    }
    guard let value = Wrapped(storedValue: storedValue) else { return nil }
    self = .some(value)
  }
}

extension UserDefaultsSerializable where Self: RawRepresentable, RawValue: UserDefaultsSerializable {
  /// The stored form of the raw value.
  public var storedValue: RawValue.StoredValue { rawValue.storedValue }

  /// nil where the stored value does not read as a raw value, or no case has it.
  public init?(storedValue: RawValue.StoredValue) {
    guard let rawValue = RawValue(storedValue: storedValue) else { return nil }
    self.init(rawValue: rawValue)
  }
}

extension UserDefaultsSerializable where Self: Codable {
  /// JSON. In the suite it is the dictionary, the array or the plain value that the JSON says.
  public var storedValue: Data? { try? Storing.json(self) }

  /// Decodes JSON; nil where there is none or the type's `init(from:)` throws.
  public init?(storedValue: Data?) {
    guard let storedValue, let value = try? JSONDecoder().decode(Self.self, from: storedValue) else {
      return nil
    }
    self = value
  }
}

/// An enum that is both stores its raw value.
extension UserDefaultsSerializable
where Self: RawRepresentable & Codable, RawValue: UserDefaultsSerializable {
  /// The stored form of the raw value.
  public var storedValue: RawValue.StoredValue { rawValue.storedValue }

  /// nil where the stored value does not read as a raw value, or no case has it.
  public init?(storedValue: RawValue.StoredValue) {
    guard let rawValue = RawValue(storedValue: storedValue) else { return nil }
    self.init(rawValue: rawValue)
  }
}

extension UserDefaultsSerializable where Self: NSObject & NSCoding {
  /// A keyed archive.
  public var storedValue: Data? {
    try? NSKeyedArchiver.archivedData(withRootObject: self, requiringSecureCoding: false)
  }

  /// Decodes a keyed archive; nil where there is none, or one of another class.
  public init?(storedValue: Data?) {
    guard let storedValue, let value = Storing.unarchive(storedValue) as? Self else { return nil }
    self = value
  }
}
