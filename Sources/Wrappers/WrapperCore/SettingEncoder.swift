package import Model

/// Turns what is `Codable` into a stored value: objects become dictionaries, sequences arrays, and what has a
/// form of its own (dates, data, URLs) takes that.
package struct SettingEncoder {
  package init() {}

  package func encode(_ value: some Encodable) throws -> SettingValue {
    let slot = Slot()
    try slot.encode(value, at: [])
    return slot.value
  }
}

/// Where one value is put together.
private final class Slot {
  private enum Content {
    case empty
    case value(SettingValue)
    case array([Slot])
    case dictionary([String: Slot])
  }

  private var content = Content.empty

  /// nil in an array is what Apple's property list encoder writes for it.
  static let null = SettingValue.string("$null")

  var value: SettingValue {
    switch content {
    case .empty: .dictionary([:])
    case .value(let value): value
    case .array(let slots): .array(slots.map(\.value))
    case .dictionary(let slots):
      .dictionary(
        Dictionary(uniqueKeysWithValues: slots.map { (ExactString($0.key), $0.value.value) }))
    }
  }

  func put(_ value: SettingValue) { content = .value(value) }

  func becomeArray() { if case .array = content {} else { content = .array([]) } }
  func becomeDictionary() { if case .dictionary = content {} else { content = .dictionary([:]) } }

  func append() -> Slot {
    guard case .array(let slots) = content else { return Slot() }
    let slot = Slot()
    content = .array(slots + [slot])
    return slot
  }

  func entry(_ key: String) -> Slot {
    guard case .dictionary(var slots) = content else { return Slot() }
    let slot = slots[key] ?? Slot()
    slots[key] = slot
    content = .dictionary(slots)
    return slot
  }

  var count: Int {
    if case .array(let slots) = content { slots.count } else { 0 }
  }

  func encode(_ value: some Encodable, at path: [any CodingKey]) throws {
    if let exact = try SettingValue(exactly: value) { return put(exact) }
    try value.encode(to: SlotEncoder(slot: self, codingPath: path))
  }
}

private struct SlotEncoder: Encoder, SingleValueEncodingContainer {
  let slot: Slot
  let codingPath: [any CodingKey]
  var userInfo: [CodingUserInfoKey: Any] { [:] }

  func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
    slot.becomeDictionary()
    return KeyedEncodingContainer(KeyedSlots(slot: slot, codingPath: codingPath))
  }

  func unkeyedContainer() -> any UnkeyedEncodingContainer {
    slot.becomeArray()
    return SlotArray(slot: slot, codingPath: codingPath)
  }

  func singleValueContainer() -> any SingleValueEncodingContainer { self }

  func encodeNil() { slot.put(Slot.null) }
  func encode(_ value: some Encodable) throws { try slot.encode(value, at: codingPath) }
}

private struct KeyedSlots<Key: CodingKey>: KeyedEncodingContainerProtocol {
  let slot: Slot
  let codingPath: [any CodingKey]

  func encodeNil(forKey key: Key) { slot.entry(key.stringValue).put(Slot.null) }

  func encode(_ value: some Encodable, forKey key: Key) throws {
    try slot.entry(key.stringValue).encode(value, at: codingPath + [key])
  }

  func nestedContainer<Nested: CodingKey>(
    keyedBy keyType: Nested.Type, forKey key: Key
  ) -> KeyedEncodingContainer<Nested> {
    encoder(key).container(keyedBy: keyType)
  }

  func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedEncodingContainer {
    encoder(key).unkeyedContainer()
  }

  func superEncoder() -> any Encoder {
    SlotEncoder(slot: slot.entry("super"), codingPath: codingPath)
  }

  func superEncoder(forKey key: Key) -> any Encoder { encoder(key) }

  private func encoder(_ key: Key) -> SlotEncoder {
    SlotEncoder(slot: slot.entry(key.stringValue), codingPath: codingPath + [key])
  }
}

private struct SlotArray: UnkeyedEncodingContainer {
  let slot: Slot
  let codingPath: [any CodingKey]
  var count: Int { slot.count }

  func encodeNil() { slot.append().put(Slot.null) }
  func encode(_ value: some Encodable) throws { try slot.append().encode(value, at: codingPath) }

  func nestedContainer<Nested: CodingKey>(keyedBy keyType: Nested.Type) -> KeyedEncodingContainer<Nested> {
    superEncoderSlot().container(keyedBy: keyType)
  }

  func nestedUnkeyedContainer() -> any UnkeyedEncodingContainer { superEncoderSlot().unkeyedContainer() }
  func superEncoder() -> any Encoder { superEncoderSlot() }

  private func superEncoderSlot() -> SlotEncoder {
    SlotEncoder(slot: slot.append(), codingPath: codingPath)
  }
}
