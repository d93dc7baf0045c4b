package import Model

/// How any Swift value is stored, and read again.
package enum Values {
  /// - Throws: what the value's own `encode(to:)` throws; `SettingMismatch` for what has no stored form.
  package static func encode<Value>(_ value: Value) throws -> SettingValue {
    if let plain = value as? any SettingConvertible { return try plain.setting() }
    if let codable = value as? any Encodable { return try SettingEncoder().encode(codable) }
    throw SettingMismatch(found: "\(Value.self)", expected: "a value that a property list can hold")
  }

  package static func decode<Value>(_ type: Value.Type, from setting: SettingValue) throws -> Value {
    let value: Any? =
      if let plain = type as? any SettingConvertible.Type {
        try plain.init(setting: setting)
      } else if let codable = type as? any Decodable.Type {
        try SettingDecoder().decode(codable, from: setting)
      } else {
        nil
      }
    guard let value = value as? Value else { throw SettingMismatch(setting, expected: type) }
    return value
  }

  /// Whether two values are equal, as far as their type knows.
  package static func areEqual<Value>(_ left: Value, _ right: Value) -> Bool {
    guard let left = left as? any Equatable else { return false }
    return left.equals(right)
  }
}

extension Equatable {
  fileprivate func equals(_ other: Any) -> Bool {
    (other as? Self) == self
  }
}
