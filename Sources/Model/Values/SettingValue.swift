/// The value of a key: a value of a property list.
///
/// Equality is exact: strings by scalars, reals by their bits (so `nan` equals `nan`, and `-0.0` does not
/// equal `0.0`), because an equal value is "no change" and a text that differs is one.
///
/// Boxed: with a payload of `Int128` inline, the compiler (Swift 6) reads a value in an optional of a structure as one of no case.
/// With the integers alone boxed it does so too: `WrapperCoreTests` ended with a bad pointer.
public indirect enum SettingValue: Sendable {
  case string(ExactString)
  /// −2⁶³ … 2⁶⁴−1, the range of property lists.
  case integer(Int128)
  case real(Double)
  case bool(Bool)
  case date(SettingDate)
  case data([UInt8])
  /// A keyed archiver's reference; kept, shown in XML, never made from plain text.
  case uid(UInt64)
  case array([SettingValue])
  case dictionary([ExactString: SettingValue])

  /// The integers that a property list can hold.
  public static let integers: ClosedRange<Int128> = Int128(Int64.min)...Int128(UInt64.max)
}

extension SettingValue {
  /// The type's name, as `user.keyhole.type` shows it.
  public var type: SettingType {
    switch self {
    case .string: .string
    case .integer: .integer
    case .real: .real
    case .bool: .bool
    case .date: .date
    case .data: .data
    case .array: .array
    case .dictionary, .uid: .dictionary
    }
  }
}

extension SettingValue: Hashable {
  /// Equal types and values; reals by their bits, so that 0 and -0 differ and a NaN equals itself.
  public static func == (left: SettingValue, right: SettingValue) -> Bool {
    switch (left, right) {
    case (.string(let a), .string(let b)): a == b
    case (.integer(let a), .integer(let b)): a == b
    case (.real(let a), .real(let b)): a.bitPattern == b.bitPattern
    case (.bool(let a), .bool(let b)): a == b
    case (.date(let a), .date(let b)): a == b
    case (.data(let a), .data(let b)): a == b
    case (.uid(let a), .uid(let b)): a == b
    case (.array(let a), .array(let b)): a == b
    case (.dictionary(let a), .dictionary(let b)): a == b
    default: false
    }
  }

  /// Hashes what `==` compares.
  public func hash(into hasher: inout Hasher) {
    switch self {
    case .string(let value): hasher.combine(value)
    case .integer(let value): hasher.combine(value)
    case .real(let value): hasher.combine(value.bitPattern)
    case .bool(let value): hasher.combine(value)
    case .date(let value): hasher.combine(value)
    case .data(let value): hasher.combine(value)
    case .uid(let value): hasher.combine(value)
    case .array(let value): hasher.combine(value)
    case .dictionary(let value): hasher.combine(value)
    }
  }
}
