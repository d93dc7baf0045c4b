package import FoundationEssentials
package import Model

/// A type that has a form of its own in a suite.
package protocol SettingConvertible {
  /// - Throws: `SettingMismatch` where the stored value can't be held exactly.
  init(setting: SettingValue) throws
  func setting() throws -> SettingValue
}

extension Bool: SettingConvertible {
  package init(setting: SettingValue) throws {
    switch setting {
    case .bool(let flag): self = flag
    case .integer(0), .real(0): self = false
    case .integer(1), .real(1): self = true
    case .string(let text):
      switch text.string.lowercased() {
      case "true", "yes", "1": self = true
      case "false", "no", "0": self = false
      default: throw SettingMismatch(setting, expected: Bool.self)
      }
    default: throw SettingMismatch(setting, expected: Bool.self)
    }
  }

  package func setting() -> SettingValue { .bool(self) }
}

extension SettingConvertible where Self: FixedWidthInteger {
  package init(setting: SettingValue) throws {
    guard let number = setting.exactInteger, let value = Self(exactly: number) else {
      throw SettingMismatch(setting, expected: Self.self)
    }
    self = value
  }

  package func setting() -> SettingValue { .integer(Int128(self)) }
}

extension Int: SettingConvertible {}
extension Int8: SettingConvertible {}
extension Int16: SettingConvertible {}
extension Int32: SettingConvertible {}
extension Int64: SettingConvertible {}
extension UInt: SettingConvertible {}
extension UInt8: SettingConvertible {}
extension UInt16: SettingConvertible {}
extension UInt32: SettingConvertible {}
extension UInt64: SettingConvertible {}

extension SettingConvertible where Self: BinaryFloatingPoint & LosslessStringConvertible {
  package init(setting: SettingValue) throws {
    switch setting {
    case .real(let number) where number.isNaN: self = .nan
    case .real(let number): self = try Self(exactly: number) ?? Self.mismatch(setting)
    case .integer(let number): self = try Self(exactly: number) ?? Self.mismatch(setting)
    case .string(let text): self = try Self(text.string) ?? Self.mismatch(setting)
    default: throw SettingMismatch(setting, expected: Self.self)
    }
  }

  package func setting() -> SettingValue { .real(Double(self)) }

  private static func mismatch(_ setting: SettingValue) throws -> Self {
    throw SettingMismatch(setting, expected: Self.self)
  }
}

extension Float: SettingConvertible {}
extension Double: SettingConvertible {}

extension Decimal: SettingConvertible {
  package init(setting: SettingValue) throws {
    let text: String? =
      switch setting {
      case .integer(let number): number.description
      case .real(let number): number.description
      case .string(let text): text.string
      default: nil
      }
    // Swift's numbers may be hexadecimal or no number at all, Foundation's are read as far as they go.
    guard let text, Double(text)?.isFinite == true, !text.contains(where: { "xX".contains($0) }),
      let number = Decimal(string: text)
    else {
      throw SettingMismatch(setting, expected: Decimal.self)
    }
    self = number
  }

  /// A number where that keeps every digit, else its text.
  package func setting() -> SettingValue {
    let text = description
    if let number = Int128(text), SettingValue.integers.contains(number) { return .integer(number) }
    if let number = Double(text), number.isFinite, Decimal(string: number.description) == self {
      return .real(number)
    }
    return .string(ExactString(text))
  }
}

extension String: SettingConvertible {
  package init(setting: SettingValue) throws {
    guard case .string(let text) = setting else { throw SettingMismatch(setting, expected: String.self) }
    self = text.string
  }

  package func setting() -> SettingValue { .string(ExactString(self)) }
}

extension URL: SettingConvertible {
  package init(setting: SettingValue) throws {
    guard case .string(let text) = setting, let url = URL(string: text.string) else {
      throw SettingMismatch(setting, expected: URL.self)
    }
    self = url
  }

  package func setting() -> SettingValue { .string(ExactString(absoluteString)) }
}

extension UUID: SettingConvertible {
  package init(setting: SettingValue) throws {
    guard case .string(let text) = setting, let uuid = UUID(uuidString: text.string) else {
      throw SettingMismatch(setting, expected: UUID.self)
    }
    self = uuid
  }

  package func setting() -> SettingValue { .string(ExactString(uuidString)) }
}

extension Date: SettingConvertible {
  package init(setting: SettingValue) throws {
    guard case .date(let date) = setting else { throw SettingMismatch(setting, expected: Date.self) }
    self.init(timeIntervalSinceReferenceDate: date.sinceReference)
  }

  package func setting() throws -> SettingValue {
    guard let date = SettingDate(sinceReference: timeIntervalSinceReferenceDate) else {
      throw StoreError.invalidValue(reason: "a date that is too far away")
    }
    return .date(date)
  }
}

extension Data: SettingConvertible {
  package init(setting: SettingValue) throws {
    guard case .data(let bytes) = setting else { throw SettingMismatch(setting, expected: Data.self) }
    self.init(bytes)
  }

  package func setting() -> SettingValue { .data(Array(self)) }
}

extension Array: SettingConvertible where Element: SettingConvertible {
  package init(setting: SettingValue) throws {
    guard case .array(let items) = setting else { throw SettingMismatch(setting, expected: Self.self) }
    self = try items.map { try Element(setting: $0) }
  }

  package func setting() throws -> SettingValue { .array(try map { try $0.setting() }) }
}

/// In an order that does not depend on the process, so that equal sets are equal values.
extension Set: SettingConvertible where Element: SettingConvertible {
  package init(setting: SettingValue) throws {
    self = Set(try [Element](setting: setting))
  }

  package func setting() throws -> SettingValue {
    .array(try map { try $0.setting() }.sorted(by: SettingValue.areInOrder))
  }
}

extension Dictionary: SettingConvertible where Key == String, Value: SettingConvertible {
  package init(setting: SettingValue) throws {
    guard case .dictionary(let entries) = setting else {
      throw SettingMismatch(setting, expected: Self.self)
    }
    let pairs = try entries.map { ($0.key.string, try Value(setting: $0.value)) }
    // Names that Swift takes for one, because they are canonically equivalent: the last one stays.
    self.init(pairs) { $1 }
  }

  package func setting() throws -> SettingValue {
    .dictionary(
      Dictionary<ExactString, SettingValue>(
        uniqueKeysWithValues: try map { (ExactString($0.key), try $0.value.setting()) }))
  }
}

extension SettingValue {
  /// The integer that a stored number or numeric text is.
  package var exactInteger: Int128? {
    switch self {
    case .integer(let number): number
    case .real(let number): Int128(exactly: number)
    case .string(let text): Int128(text.string) ?? Double(text.string).flatMap(Int128.init(exactly:))
    default: nil
    }
  }

  /// Some order of all values that is the same everywhere.
  package static func areInOrder(_ left: SettingValue, _ right: SettingValue) -> Bool {
    switch (left, right) {
    case (.string(let a), .string(let b)): a < b
    case (.integer(let a), .integer(let b)): a < b
    case (.real(let a), .real(let b)): Int64(bitPattern: a.bitPattern) < Int64(bitPattern: b.bitPattern)
    case (.bool(let a), .bool(let b)): !a && b
    case (.date(let a), .date(let b)): a < b
    case (.data(let a), .data(let b)): a.lexicographicallyPrecedes(b)
    case (.array(let a), .array(let b)): a.lexicographicallyPrecedes(b, by: areInOrder)
    case (.dictionary(let a), .dictionary(let b)):
      a.sortedParts.lexicographicallyPrecedes(b.sortedParts, by: areInOrder)
    default: left.rank < right.rank
    }
  }

  private var rank: Int {
    SettingType.allCases.firstIndex(of: type) ?? 0
  }
}

extension [ExactString: SettingValue] {
  fileprivate var sortedParts: [SettingValue] {
    sorted { $0.key < $1.key }.flatMap { [.string($0.key), $0.value] }
  }
}
