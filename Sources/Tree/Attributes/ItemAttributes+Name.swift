internal import Model
import Platform

/// The meaning of an extended attribute's name on an item.
enum ItemAttributeName {
  case keyhole(KeyholeAttribute)
  /// With what the item has there.
  case identity(ExactString?)
  case own(String)

  /// - Throws: `unsupported` outside `user.` and for what Keyhole does not know; tools probe both all the time.
  ///
  /// A function, as an initialiser would take a copy of the identity.
  static func of(_ name: String, _ identity: ItemIdentity) throws(StoreError) -> ItemAttributeName {
    // By bytes: a combining mark after the point makes one `Character` with it.
    let bytes = name.utf8.span
    guard bytes.isUserAttribute else {
      throw .unsupported(reason: "only attributes below user. are kept")
    }
    let short = bytes.extracting(5...)
    guard !short.isEmpty else { throw .invalidValue(reason: "the attribute has no name") }
    if short.starts(with: "keyhole.") {
      return .keyhole(try keyhole(short.extracting(8...).text))
    }
    guard let value = IdentityAttribute(short)?.value(in: identity) else { return .own(short.text) }
    return .identity(value)
  }

  private static func keyhole(_ word: String) throws(StoreError) -> KeyholeAttribute {
    guard let attribute = KeyholeAttribute(rawValue: word) else {
      throw .unsupported(reason: "an item has no such attribute below user.keyhole.")
    }
    return attribute
  }
}

/// The values that an item's own attributes can have.
enum ItemAttributeValue {
  /// The value as it is kept.
  ///
  /// The present value is always allowed, so that every listed attribute can be written back.
  static func checked(
    _ value: [UInt8], as name: String, on item: Item
  ) throws(StoreError) -> [UInt8] {
    if item.attributes[ExactString(name)] == value { return value }
    switch name {
    case "generic": return value
    case "creator", "type": return try item.identity.itemClass == .other ? text(value) : number(value)
    case "isInvisible", "isNegative": return try flag(value)
    default: return try text(value)
    }
  }

  /// UTF-8 without NUL, which no keychain but the vault could hold.
  static func text(_ value: [UInt8]) throws(StoreError) -> [UInt8] {
    guard !value.contains(0), ExactString(utf8: value) != nil else {
      throw .invalidValue(reason: "the attribute is not UTF-8 text")
    }
    return value
  }

  /// Apple's four-character codes are numbers of 32 bits.
  private static func number(_ value: [UInt8]) throws(StoreError) -> [UInt8] {
    guard let number = ExactString(utf8: value).flatMap({ UInt32($0.string) }),
      number.description.utf8.elementsEqual(value)
    else { throw .invalidValue(reason: "the attribute is not a decimal number from 0 to 4294967295") }
    return value
  }

  private static func flag(_ value: [UInt8]) throws(StoreError) -> [UInt8] {
    guard value == Array("true".utf8) || value == Array("false".utf8) else {
      throw .invalidValue(reason: "the attribute is not true or false")
    }
    return value
  }
}
