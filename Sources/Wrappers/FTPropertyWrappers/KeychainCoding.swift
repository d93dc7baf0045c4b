import Foundation
import Model
import WrapperCore

/// Values as the bytes of a secret, as the original writes them: integers and `Bool` as 8 bytes in the
/// machine's order, `String` and `URL` as UTF-8, `Data` as it is, and what has parts as a binary property list.
///
/// Types that the original can't store are text: reals, decimal numbers, dates (seconds since 2001), UUIDs; a value that
/// encodes to a single value is stored as that.
package struct KeychainEncoder {
  package init() {}

  package func encode(_ value: some Encodable) throws -> Data {
    switch value {
    case let data as Data: data
    case let text as String: Data(text.utf8)
    case let url as URL: Data(url.absoluteString.utf8)
    case let number as any FixedWidthInteger: bytes(number)
    case let flag as Bool: bytes(flag ? 1 : 0)
    case let number as Decimal: Data(number.description.utf8)
    case let date as Date: Data(date.timeIntervalSinceReferenceDate.description.utf8)
    default: try encode(shape: value)
    }
  }

  private func encode(shape value: some Encodable) throws -> Data {
    switch try SettingEncoder().encode(value) {
    case .string(let text) where !value.isNil: return Data(text.utf8)
    case .integer(let number): return bytes(number)
    case .real(let number): return Data((value as? Float)?.description.utf8 ?? number.description.utf8)
    case .bool(let flag): return bytes(flag ? 1 : 0)
    case .data(let data): return Data(data)
    case .array, .dictionary: return try propertyList(value)
    default: throw KeychainError.generalEncodingFailure
    }
  }

  private func propertyList(_ value: some Encodable) throws -> Data {
    let encoder = PropertyListEncoder()
    encoder.outputFormat = .binary
    return try encoder.encode(value)
  }

  private func bytes(_ number: some FixedWidthInteger) -> Data {
    let number = UInt64(truncatingIfNeeded: number)
    return Data((0..<8).map { UInt8(truncatingIfNeeded: number >> UInt64(8 * $0)) })
  }
}

extension Encodable {
  fileprivate var isNil: Bool { (self as? any OptionalValue)?.isNothing ?? false }
}

private protocol OptionalValue {
  var isNothing: Bool { get }
  /// A value that is there: nil is never stored.
  static func decode(_ data: Data) throws -> Any?
}

extension Optional: OptionalValue {
  fileprivate var isNothing: Bool { self == nil }

  fileprivate static func decode(_ data: Data) throws -> Any? {
    guard let type = Wrapped.self as? any Decodable.Type else { return nil }
    return try KeychainDecoder().decode(type, from: data)
  }
}

package struct KeychainDecoder {
  package init() {}

  /// - Throws: `KeychainError.generalDecodingFailure` where the bytes are no such value, or one that the type
  ///   can't hold exactly; what the type's own `init(from:)` throws.
  package func decode<T: Decodable>(_ type: T.Type, from data: Data) throws -> T {
    if let optional = type as? any OptionalValue.Type, let value = try optional.decode(data) as? T {
      return value
    }
    if let value = plain(type, data) { return value }
    if type == Data.self || type == String.self || type == URL.self {
      throw KeychainError.generalDecodingFailure
    }
    if data.starts(with: Data("bplist".utf8)) || data.starts(with: Data("<?xml".utf8)) {
      return try PropertyListDecoder().decode(type, from: data)
    }
    for candidate in candidates(data) {
      if let value = try? SettingDecoder().decode(type, from: candidate) { return value }
    }
    throw KeychainError.generalDecodingFailure
  }

  private func plain<T>(_ type: T.Type, _ data: Data) -> T? {
    switch type {
    case is Data.Type: data as? T
    case is String.Type: text(data) as? T
    case is URL.Type: text(data).flatMap { URL(string: $0) } as? T
    case is Date.Type: text(data).flatMap(Double.init).map { Date(timeIntervalSinceReferenceDate: $0) } as? T
    default: nil
    }
  }

  /// The values that the bytes may be, the likeliest first: the bytes don't say. The original's integers have 8
  /// bytes; it reads 1, 2 and 4 too, which are text first if they are a number in text.
  private func candidates(_ data: Data) -> [SettingValue] {
    let text = text(data).map { [SettingValue.string(ExactString($0))] } ?? []
    let number = integer(data).map { [SettingValue.integer($0)] } ?? []
    let unsigned =
      data.count == 8
      ? integer(data).map { [SettingValue.integer(Int128(UInt64(truncatingIfNeeded: $0)))] } ?? [] : []
    return data.count == 8 ? number + unsigned + text : text + number
  }

  private func integer(_ data: Data) -> Int128? {
    let unsigned = data.reversed().reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
    switch data.count {
    case 1: return Int128(Int8(truncatingIfNeeded: unsigned))
    case 2: return Int128(Int16(truncatingIfNeeded: unsigned))
    case 4: return Int128(Int32(truncatingIfNeeded: unsigned))
    case 8: return Int128(Int64(truncatingIfNeeded: unsigned))
    default: return nil
    }
  }

  private func text(_ data: Data) -> String? {
    String(validating: data, as: UTF8.self)
  }
}
