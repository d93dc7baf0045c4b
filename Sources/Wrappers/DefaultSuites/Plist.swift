import Foundation
package import Model
import WrapperCore

/// Anything that a property list can hold, typed or as `Any`.
package enum Plist {
  package static func write(_ value: Any) throws -> SettingValue {
    switch value {
    case let plain as any SettingConvertible: try plain.setting()
    case let number as NSNumber: write(number)
    case let items as [Any]: .array(try items.map(write))
    case let entries as [String: Any]:
      .dictionary(
        Dictionary(uniqueKeysWithValues: try entries.map { (ExactString($0.key), try write($0.value)) }))
    default: try Values.encode(value)
    }
  }

  package static func read<Value>(_ type: Value.Type, _ setting: SettingValue) throws -> Value {
    if type is any SettingConvertible.Type || type is any Decodable.Type {
      return try Values.decode(type, from: setting)
    }
    guard let value = any(setting) as? Value else { throw SettingMismatch(setting, expected: type) }
    return value
  }

  package static func any(_ setting: SettingValue) -> Any {
    switch setting {
    case .string(let text): text.string
    case .integer(let number): Int(exactly: number).map { $0 as Any } ?? UInt(truncatingIfNeeded: number)
    case .real(let number): number
    case .bool(let flag): flag
    case .date(let date): Date(timeIntervalSinceReferenceDate: date.sinceReference)
    case .data(let bytes): Data(bytes)
    case .uid(let number): UInt(number)
    case .array(let items): items.map(any)
    case .dictionary(let entries):
      Dictionary(entries.map { ($0.key.string, any($0.value)) }) { $1 }
    }
  }

  /// An `NSNumber` casts to every number type; its own type tells what it was made of.
  private static func write(_ number: NSNumber) -> SettingValue {
    // SAFETY: objCType is a C string that lives as long as the number's class.
    switch unsafe UInt8(bitPattern: number.objCType.pointee) {
    case UInt8(ascii: "c"), UInt8(ascii: "B"): .bool(number.boolValue)
    case UInt8(ascii: "d"), UInt8(ascii: "f"): .real(number.doubleValue)
    case UInt8(ascii: "Q"): .integer(Int128(number.uint64Value))
    default: .integer(Int128(number.int64Value))
    }
  }
}
