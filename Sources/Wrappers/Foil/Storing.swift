import DefaultSuites
import Foundation
import Model
import WrapperCore

/// Serializable values to and from the values of a suite.
enum Storing {
  /// nil: there is nothing to store, the key is to be removed.
  static func write<T: UserDefaultsSerializable>(_ value: T) throws -> SettingValue? {
    if let collected = value as? any Collected { return try collected.write() }
    let stored = value.storedValue
    if let codable = value as? any Codable, let data = stored as? Data?, data == (try? json(codable)) {
      // The default implementation, and so the value's own shape can be stored.
      return try SettingEncoder().encode(codable)
    }
    return try write(stored: stored)
  }

  static func read<T: UserDefaultsSerializable>(_ type: T.Type, from setting: SettingValue) throws -> T {
    if let collected = type as? any Collected.Type {
      guard let value = try collected.read(setting) as? T else {
        throw SettingMismatch(setting, expected: type)
      }
      return value
    }
    if T.StoredValue.self == Data?.self, let value = try readShape(type, setting) { return value }
    let stored = try read(stored: T.StoredValue.self, setting)
    guard let value = T(storedValue: stored) else { throw SettingMismatch(setting, expected: type) }
    return value
  }

  /// The JSON of a value, always the same for equal ones.
  static func json(_ value: some Encodable) throws -> Data {
    let encoder = JSONEncoder()
    encoder.outputFormatting = .sortedKeys
    return try encoder.encode(value)
  }

  static func unarchive(_ data: Data) -> Any? {
    guard let archive = try? NSKeyedUnarchiver(forReadingFrom: data) else { return nil }
    archive.requiresSecureCoding = false
    return archive.decodeObject(forKey: NSKeyedArchiveRootObjectKey)
  }
}

extension Storing {
  /// A `Codable` value that is stored in its encoded form; nil: it is stored as data.
  private static func readShape<T>(_ type: T.Type, _ setting: SettingValue) throws -> T? {
    if case .data = setting { return nil }
    guard let codable = type as? any Decodable.Type else { return nil }
    return try SettingDecoder().decode(codable, from: setting) as? T
  }

  private static func write<Stored>(stored: Stored) throws -> SettingValue? {
    guard let optional = stored as? any OptionalValue else { return try Plist.write(stored) }
    return try optional.wrapped.map(Plist.write)
  }

  private static func read<Stored>(stored: Stored.Type, _ setting: SettingValue) throws -> Stored {
    if let optional = stored as? any OptionalValue.Type {
      guard let value = try optional.read(setting) as? Stored else {
        throw SettingMismatch(setting, expected: stored)
      }
      return value
    }
    return try Plist.read(stored, setting)
  }
}

/// Any optional, by the wrapped value.
protocol OptionalValue {
  var wrapped: Any? { get }
  static func read(_ setting: SettingValue) throws -> Any
}

extension Optional: OptionalValue {
  var wrapped: Any? { self }
  static func read(_ setting: SettingValue) throws -> Any {
    Self.some(try Plist.read(Wrapped.self, setting)) as Any
  }
}

/// Collections are stored element by element, so that each keeps its own form.
private protocol Collected {
  func write() throws -> SettingValue
  static func read(_ setting: SettingValue) throws -> Self
}

extension Collected {
  fileprivate static func element<T: UserDefaultsSerializable>(_ value: T) throws -> SettingValue {
    guard let setting = try Storing.write(value) else {
      throw SettingMismatch(found: "nothing", expected: "\(T.self)")
    }
    return setting
  }
}

extension Array: Collected where Element: UserDefaultsSerializable {
  func write() throws -> SettingValue { .array(try map { try Self.element($0) }) }

  static func read(_ setting: SettingValue) throws -> [Element] {
    guard case .array(let items) = setting else { throw SettingMismatch(setting, expected: Self.self) }
    return try items.map { try Storing.read(Element.self, from: $0) }
  }
}

extension Set: Collected where Element: UserDefaultsSerializable {
  func write() throws -> SettingValue {
    .array(try map { try Self.element($0) }.sorted(by: SettingValue.areInOrder))
  }

  static func read(_ setting: SettingValue) throws -> Set<Element> { Set(try [Element].read(setting)) }
}

extension Dictionary: Collected where Key == String, Value: UserDefaultsSerializable {
  func write() throws -> SettingValue {
    .dictionary(
      Dictionary<ExactString, SettingValue>(
        uniqueKeysWithValues: try map { (ExactString($0.key), try Self.element($0.value)) }))
  }

  static func read(_ setting: SettingValue) throws -> [String: Value] {
    guard case .dictionary(let entries) = setting else {
      throw SettingMismatch(setting, expected: Self.self)
    }
    return Dictionary(try entries.map { ($0.key.string, try Storing.read(Value.self, from: $0.value)) }) {
      $1
    }
  }
}

extension Optional: Collected where Wrapped: UserDefaultsSerializable {
  func write() throws -> SettingValue { Self.form.write(try map { try Self.element($0) }) }
  static func read(_ setting: SettingValue) throws -> Wrapped? { try form.read(setting) }

  private static var form: OptionalSetting<Wrapped> {
    OptionalSetting { try Storing.read(Wrapped.self, from: $0) }
  }
}
