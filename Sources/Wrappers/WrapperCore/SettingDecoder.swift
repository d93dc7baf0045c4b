import FoundationEssentials
package import Model

/// Reads what `SettingEncoder` wrote, and what others wrote that has the same shape.
package struct SettingDecoder {
  package init() {}

  /// - Throws: `SettingMismatch`, or what the type's own `init(from:)` throws.
  package func decode<Value: Decodable>(_ type: Value.Type, from setting: SettingValue) throws -> Value {
    try ValueDecoder(setting: setting, codingPath: []).decode(type)
  }
}

extension SettingValue {
  /// The form of a value inside what is `Codable`; nil: it has to encode itself.
  ///
  /// A date that has a fraction of a second stays exact, as the number that a date encodes itself as.
  init?(exactly value: some Encodable) throws {
    if let date = value as? Date, date.timeIntervalSince1970.rounded(.down) != date.timeIntervalSince1970 {
      self = .real(date.timeIntervalSinceReferenceDate)
    } else if value is any Collected {
      return nil
    } else if let plain = value as? any SettingConvertible {
      self = try plain.setting()
    } else {
      return nil
    }
  }
}

/// Collections encode their elements one by one, or dates in them would lose their fractions.
private protocol Collected {}
extension Dictionary: Collected {}
extension Array: Collected {}
extension Set: Collected {}

private struct ValueDecoder: Decoder, SingleValueDecodingContainer {
  let setting: SettingValue
  let codingPath: [any CodingKey]
  var userInfo: [CodingUserInfoKey: Any] { [:] }

  func container<Key: CodingKey>(keyedBy type: Key.Type) throws -> KeyedDecodingContainer<Key> {
    guard case .dictionary(let entries) = setting else { throw mismatch([String: Any].self) }
    return KeyedDecodingContainer(KeyedValues(entries: entries, codingPath: codingPath))
  }

  func unkeyedContainer() throws -> any UnkeyedDecodingContainer {
    guard case .array(let items) = setting else { throw mismatch([Any].self) }
    return ValueArray(items: items, codingPath: codingPath)
  }

  func singleValueContainer() -> any SingleValueDecodingContainer { self }

  func decodeNil() -> Bool { setting == .string("$null") }

  func decode<Value: Decodable>(_ type: Value.Type) throws -> Value {
    if type == Date.self, case .real(let seconds) = setting,
      let date = Date(timeIntervalSinceReferenceDate: seconds) as? Value
    {
      return date
    }
    guard !(type is any Collected.Type), let plain = type as? any SettingConvertible.Type else {
      return try type.init(from: self)
    }
    do {
      guard let value = try plain.init(setting: setting) as? Value else { throw mismatch(type) }
      return value
    } catch is SettingMismatch {
      throw mismatch(type)
    }
  }

  private func mismatch(_ expected: Any.Type) -> SettingMismatch {
    SettingMismatch(setting, expected: expected, path: codingPath.dotted)
  }
}

extension [any CodingKey] {
  fileprivate var dotted: String { map(\.stringValue).joined(separator: ".") }
}

private struct KeyedValues<Key: CodingKey>: KeyedDecodingContainerProtocol {
  let entries: [ExactString: SettingValue]
  let codingPath: [any CodingKey]

  var allKeys: [Key] { entries.keys.compactMap { Key(stringValue: $0.string) } }
  func contains(_ key: Key) -> Bool { entries[ExactString(key.stringValue)] != nil }
  func decodeNil(forKey key: Key) throws -> Bool { try decoder(key).decodeNil() }

  func decode<Value: Decodable>(_ type: Value.Type, forKey key: Key) throws -> Value {
    try decoder(key).decode(type)
  }

  func nestedContainer<Nested: CodingKey>(
    keyedBy type: Nested.Type, forKey key: Key
  ) throws -> KeyedDecodingContainer<Nested> {
    try decoder(key).container(keyedBy: type)
  }

  func nestedUnkeyedContainer(forKey key: Key) throws -> any UnkeyedDecodingContainer {
    try decoder(key).unkeyedContainer()
  }

  func superDecoder() throws -> any Decoder {
    let value = entries["super"] ?? .dictionary([:])
    return ValueDecoder(setting: value, codingPath: codingPath)
  }

  func superDecoder(forKey key: Key) throws -> any Decoder { try decoder(key) }

  private func decoder(_ key: Key) throws -> ValueDecoder {
    guard let value = entries[ExactString(key.stringValue)] else {
      throw SettingMismatch(
        found: "nothing", expected: key.stringValue, path: (codingPath + [key]).dotted)
    }
    return ValueDecoder(setting: value, codingPath: codingPath + [key])
  }
}

private struct ValueArray: UnkeyedDecodingContainer {
  let items: [SettingValue]
  let codingPath: [any CodingKey]
  var currentIndex = 0

  init(items: [SettingValue], codingPath: [any CodingKey]) {
    self.items = items
    self.codingPath = codingPath
  }

  var count: Int? { items.count }
  var isAtEnd: Bool { currentIndex >= items.count }

  mutating func decodeNil() throws -> Bool {
    guard try decoder().decodeNil() else { return false }
    currentIndex += 1
    return true
  }

  mutating func decode<Value: Decodable>(_ type: Value.Type) throws -> Value {
    let value = try decoder().decode(type)
    currentIndex += 1
    return value
  }

  mutating func nestedContainer<Nested: CodingKey>(
    keyedBy type: Nested.Type
  ) throws -> KeyedDecodingContainer<Nested> {
    try next().container(keyedBy: type)
  }

  mutating func nestedUnkeyedContainer() throws -> any UnkeyedDecodingContainer {
    try next().unkeyedContainer()
  }

  mutating func superDecoder() throws -> any Decoder { try next() }

  private mutating func next() throws -> ValueDecoder {
    let decoder = try decoder()
    currentIndex += 1
    return decoder
  }

  private func decoder() throws -> ValueDecoder {
    guard currentIndex < items.count else {
      throw SettingMismatch(
        found: "the end of an array", expected: "one more element", path: codingPath.dotted)
    }
    return ValueDecoder(setting: items[currentIndex], codingPath: codingPath)
  }
}
