import DefaultSuites
public import Foundation
import Model
import WrapperCore

/// A type that a suite can hold.
///
/// The types that Keyhole stores need neither requirement; a type of one's own may implement them.
public protocol DefaultsValue: DefaultsValueConvertible where DefaultsRepresentation == Self {
  /// Stores the value under a key. - Throws: an error that the property wrapper then has as its `error`.
  func save(to defaults: UserDefaults, forKey key: String) throws

  /// - Throws: `DefaultsError`.
  init(from defaults: UserDefaults, forKey key: String) throws
}

extension DefaultsValue {
  /// Takes the stored value unchanged.
  public init(defaultsRepresentation: Self) throws { self = defaultsRepresentation }
  /// The value itself.
  public func defaultsRepresentation() throws -> Self { self }

  /// Stores the value as a setting of its own type, such as `integer` for `Int`.
  ///
  /// - Throws: `StoreError` where the suite can't be written, or the value is no property list.
  public func save(to defaults: UserDefaults, forKey key: String) throws {
    let setting = try Plist.write(self)
    try defaults.asSettings.store(setting, key)
  }

  /// - Throws: `DefaultsError.missingValue` where the key is not stored, `typeMismatch` where its value does not read
  ///   as this type.
  public init(from defaults: UserDefaults, forKey key: String) throws {
    guard let setting = defaults.asSettings.setting(key) else { throw DefaultsError.missingValue(key: key) }
    do {
      self = try Plist.read(Self.self, setting)
    } catch is SettingMismatch {
      throw DefaultsError.typeMismatch(found: Plist.any(setting), expected: Self.self)
    }
  }

  /// Saves the value in a suite.
  public func save(to suite: Suite, forKey key: String) throws {
    try save(to: SettingDefaults(suite) as UserDefaults, forKey: key)
  }

  /// Loads the value from a suite. - Throws: `DefaultsError`.
  public init(from suite: Suite, forKey key: String) throws {
    try self.init(from: SettingDefaults(suite) as UserDefaults, forKey: key)
  }
}

extension UserDefaults {
  var asSettings: SettingDefaults {
    self as? SettingDefaults ?? SettingDefaults(Suite(self))
  }
}

extension Bool: DefaultsValue {}
extension Int: DefaultsValue {}
extension Int8: DefaultsValue {}
extension Int16: DefaultsValue {}
extension Int32: DefaultsValue {}
extension Int64: DefaultsValue {}
extension UInt: DefaultsValue {}
extension UInt8: DefaultsValue {}
extension UInt16: DefaultsValue {}
extension UInt32: DefaultsValue {}
extension UInt64: DefaultsValue {}
extension Float: DefaultsValue {}
extension Double: DefaultsValue {}
extension String: DefaultsValue {}
extension Data: DefaultsValue {}
extension Date: DefaultsValue {}
extension URL: DefaultsValue {}
extension UUID: DefaultsValue {}
extension Decimal: DefaultsValue {}

/// One value by itself, outside of any suite: how elements of collections are stored.
enum Part {
  static func write<Value: DefaultsValue>(_ value: Value) throws -> SettingValue {
    let scratch = SettingDefaults.scratch()
    try value.save(to: scratch as UserDefaults, forKey: "part")
    guard let setting = scratch.setting("part") else { throw DefaultsError.missingValue(key: "part") }
    return setting
  }

  static func read<Value: DefaultsValue>(_ type: Value.Type, _ setting: SettingValue) throws -> Value {
    let scratch = SettingDefaults.scratch()
    try scratch.store(setting, "part")
    return try type.init(from: scratch as UserDefaults, forKey: "part")
  }
}

extension DefaultsValue where Self: Sequence {
  /// The stored value, as long as it is an array.
  static func items(_ defaults: UserDefaults, _ key: String) throws -> [SettingValue] {
    let setting = try setting(defaults, key)
    guard case .array(let items) = setting else {
      throw DefaultsError.typeMismatch(found: Plist.any(setting), expected: Self.self)
    }
    return items
  }
}

extension DefaultsValue {
  static func setting(_ defaults: UserDefaults, _ key: String) throws -> SettingValue {
    guard let setting = defaults.asSettings.setting(key) else { throw DefaultsError.missingValue(key: key) }
    return setting
  }
}

extension Array: DefaultsValue where Element: DefaultsValue {
  /// Stores a dictionary of the values as they store themselves.
  public func save(to defaults: UserDefaults, forKey key: String) throws {
    try defaults.asSettings.store(.array(map { try Part.write($0) }), key)
  }

  /// - Throws: `DefaultsError.missingValue`, `typeMismatch` for what is no dictionary, and what reading a value throws.
  public init(from defaults: UserDefaults, forKey key: String) throws {
    self = try Self.items(defaults, key).map { try Part.read(Element.self, $0) }
  }
}

extension Dictionary: DefaultsValue where Key == String, Value: DefaultsValue {
  /// Stores a dictionary of the values as they store themselves.
  public func save(to defaults: UserDefaults, forKey key: String) throws {
    let entries = try map { (ExactString($0.key), try Part.write($0.value)) }
    try defaults.asSettings.store(.dictionary(.init(uniqueKeysWithValues: entries)), key)
  }

  /// - Throws: `DefaultsError.missingValue`, `typeMismatch` for what is no dictionary, and what reading a value throws.
  public init(from defaults: UserDefaults, forKey key: String) throws {
    let setting = try Self.setting(defaults, key)
    guard case .dictionary(let entries) = setting else {
      throw DefaultsError.typeMismatch(found: Plist.any(setting), expected: Self.self)
    }
    let pairs = try entries.map { ($0.key.string, try Part.read(Value.self, $0.value)) }
    self.init(pairs) { $1 }
  }
}
