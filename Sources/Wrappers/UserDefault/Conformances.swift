public import Foundation
package import Model
public import WrapperCore

/// A sequence that can be made of an array of its elements, and so be stored as one.
public protocol ExpressibleByArray: Sequence {
  /// Makes the sequence of the elements, in order. Sets keep one of equal elements.
  init(array: [Element])
}

/// A sequence that can be made of any other one.
public protocol ExpressibleBySequence: ExpressibleByArray {
  /// Makes the sequence of the elements of another one.
  init<Elements: Sequence>(_ elements: Elements) where Elements.Element == Element
}

extension ExpressibleBySequence {
  /// Passes the array to the initialiser that takes any sequence.
  public init(array: [Element]) { self.init(array) }
}

extension DefaultsValueConvertible where Self: ExpressibleByArray, Element: DefaultsValueConvertible {
  /// Reads every element, in order. - Throws: what reading an element throws.
  public init(defaultsRepresentation: [Element.DefaultsRepresentation]) throws {
    self.init(array: try defaultsRepresentation.map { try Element(defaultsRepresentation: $0) })
  }

  /// The stored forms of the elements, in order. - Throws: what storing an element throws.
  public func defaultsRepresentation() throws -> [Element.DefaultsRepresentation] {
    try map { try $0.defaultsRepresentation() }
  }
}

extension Array: ExpressibleBySequence {}
extension Set: ExpressibleBySequence {}
extension ContiguousArray: ExpressibleBySequence {}
extension ArraySlice: ExpressibleBySequence {}

extension Array: DefaultsValueConvertible where Element: DefaultsValueConvertible {
  /// An array of the elements' stored forms.
  public typealias DefaultsRepresentation = [Element.DefaultsRepresentation]

  /// Reads every element, in order. - Throws: what reading an element throws.
  public init(defaultsRepresentation: [Element.DefaultsRepresentation]) throws {
    self = try defaultsRepresentation.map { try Element(defaultsRepresentation: $0) }
  }

  /// The stored forms of the elements, in order. - Throws: what storing an element throws.
  public func defaultsRepresentation() throws -> [Element.DefaultsRepresentation] {
    try map { try $0.defaultsRepresentation() }
  }
}

extension ContiguousArray: DefaultsValueConvertible where Element: DefaultsValueConvertible {
  /// An array of the elements' stored forms.
  public typealias DefaultsRepresentation = [Element.DefaultsRepresentation]
}

extension ArraySlice: DefaultsValueConvertible where Element: DefaultsValueConvertible {
  /// An array of the elements' stored forms.
  public typealias DefaultsRepresentation = [Element.DefaultsRepresentation]
}

/// In an order that does not depend on the process, so that equal sets are equal values.
extension Set: DefaultsValueConvertible where Element: DefaultsValueConvertible {
  /// An array of the elements' stored forms.
  public typealias DefaultsRepresentation = [Element.DefaultsRepresentation]

  /// The stored forms of the elements, sorted by their stored values. - Throws: what storing an element throws.
  public func defaultsRepresentation() throws -> [Element.DefaultsRepresentation] {
    let parts = try map { element in
      let part = try element.defaultsRepresentation()
      return (part: part, setting: try Part.write(part))
    }
    return parts.sorted { SettingValue.areInOrder($0.setting, $1.setting) }.map(\.part)
  }
}

extension Dictionary: DefaultsValueConvertible
where Key: DefaultsValueConvertible, Key.DefaultsRepresentation == String, Value: DefaultsValueConvertible {
  /// A dictionary of the values' stored forms, under the stored forms of the keys, which are strings.
  public typealias DefaultsRepresentation = [String: Value.DefaultsRepresentation]

  /// Reads every key and value; of keys that read alike, any one's value stays. - Throws: what reading one throws.
  public init(defaultsRepresentation: [String: Value.DefaultsRepresentation]) throws {
    let pairs = try defaultsRepresentation.map {
      (try Key(defaultsRepresentation: $0.key), try Value(defaultsRepresentation: $0.value))
    }
    self.init(pairs) { $1 }
  }

  /// The stored forms of keys and values. - Throws: what storing one throws.
  public func defaultsRepresentation() throws -> [String: Value.DefaultsRepresentation] {
    let pairs = try map {
      (try $0.key.defaultsRepresentation(), try $0.value.defaultsRepresentation())
    }
    return [String: Value.DefaultsRepresentation](pairs) { $1 }
  }
}

extension DefaultsValueConvertible where Self: RawRepresentable, RawValue: DefaultsValueConvertible {
  /// - Throws: what reading the raw value throws; `DefaultsError.illegalValue` where no case has it.
  public init(defaultsRepresentation: RawValue.DefaultsRepresentation) throws {
    self = try Self(checking: RawValue(defaultsRepresentation: defaultsRepresentation))
  }

  /// The stored form of the raw value.
  public func defaultsRepresentation() throws -> RawValue.DefaultsRepresentation {
    try rawValue.defaultsRepresentation()
  }
}

extension RawRepresentable {
  fileprivate init(checking rawValue: RawValue) throws {
    guard let value = Self(rawValue: rawValue) else {
      throw DefaultsError.illegalValue(found: rawValue, for: Self.self)
    }
    self = value
  }
}

/// The encoded form of a `Codable` value: a dictionary, an array or a plain value.
public struct CodableRepresentation: DefaultsValue, SettingConvertible {
  fileprivate let value: SettingValue

  package init(setting: SettingValue) { value = setting }
  package func setting() -> SettingValue { value }
}

extension DefaultsValueConvertible where Self: Codable {
  /// Also reads the JSON that the original stores.
  public init(defaultsRepresentation: CodableRepresentation) throws {
    if case .data(let bytes) = defaultsRepresentation.value,
      let value = try? JSONDecoder().decode(Self.self, from: Data(bytes))
    {
      self = value
    } else {
      self = try SettingDecoder().decode(Self.self, from: defaultsRepresentation.value)
    }
  }

  /// Encodes the value as a dictionary, an array or a plain value of a property list.
  public func defaultsRepresentation() throws -> CodableRepresentation {
    CodableRepresentation(setting: try SettingEncoder().encode(self))
  }
}

/// An enum that is both stores its raw value.
extension DefaultsValueConvertible
where Self: RawRepresentable & Codable, RawValue: DefaultsValueConvertible {
  /// - Throws: what reading the raw value throws; `DefaultsError.illegalValue` where no case has it.
  public init(defaultsRepresentation: RawValue.DefaultsRepresentation) throws {
    self = try Self(checking: RawValue(defaultsRepresentation: defaultsRepresentation))
  }

  /// The stored form of the raw value.
  public func defaultsRepresentation() throws -> RawValue.DefaultsRepresentation {
    try rawValue.defaultsRepresentation()
  }
}

/// A keyed archive.
extension DefaultsValueConvertible where Self: NSObject & NSCoding {
  /// Unarchives without secure coding. - Throws: `DefaultsError.illegalValue` for an object of another class, and the
  /// error of `NSKeyedUnarchiver`.
  public init(defaultsRepresentation: Data) throws {
    let archive = try NSKeyedUnarchiver(forReadingFrom: defaultsRepresentation)
    archive.requiresSecureCoding = false
    guard let value = archive.decodeObject(forKey: NSKeyedArchiveRootObjectKey) as? Self else {
      throw DefaultsError.illegalValue(found: defaultsRepresentation, for: Self.self)
    }
    self = value
  }

  /// A keyed archive. - Throws: the error of `NSKeyedArchiver`.
  public func defaultsRepresentation() throws -> Data {
    try NSKeyedArchiver.archivedData(withRootObject: self, requiringSecureCoding: false)
  }
}
