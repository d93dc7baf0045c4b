import Model
import Platform
import VaultRecords

/// Values of settings as bytes: a byte for the type, and the content; what has a length has it in front, in 4 bytes.
struct ValueWriter {
  /// As many arrays and dictionaries inside each other as Foundation reads in a property list.
  static let deepest = 512
  /// A value's type and the length of its bytes, in bytes at most: they do not count for the largest value.
  static let longestHead = 5
  /// Seconds since 1970 that every reader of property lists keeps.
  private static let dates: ClosedRange<Int64> = -8_000_000_000_000_000...8_000_000_000_000_000

  private var writer = FieldWriter()
  var bytes: [UInt8] { writer.bytes }

  /// - Throws: `invalidValue` for what no property list can hold.
  mutating func put(_ value: SettingValue, depth: Int = 0) throws(StoreError) {
    switch value {
    case .string(let text): writer.put(ValueType.string, text.utf8)
    case .integer(let number):
      guard SettingValue.integers.contains(number) else {
        throw .invalidValue(reason: "an integer outside −2⁶³ … 2⁶⁴−1")
      }
      begin(ValueType.integer)
      writer.put(raw: UInt128(bitPattern: number))
    case .real(let number):
      begin(ValueType.real)
      writer.put(raw: number.bitPattern)
    case .bool(let flag):
      begin(flag ? ValueType.true : ValueType.false)
    case .date(let date):
      guard Self.dates.contains(date.seconds) else {
        throw .invalidValue(reason: "a date that is too far away")
      }
      begin(ValueType.date)
      writer.put(raw: UInt64(bitPattern: date.seconds))
    case .data(let bytes): writer.put(ValueType.data, bytes)
    case .uid(let number):
      begin(ValueType.uid)
      writer.put(raw: number)
    case .array(let items):
      try check(depth)
      begin(ValueType.array)
      writer.put(raw: UInt32(truncatingIfNeeded: items.count))
      for item in items { try put(item, depth: depth + 1) }
    case .dictionary(let entries):
      try check(depth)
      begin(ValueType.dictionary)
      writer.put(raw: UInt32(truncatingIfNeeded: entries.count))
      for (key, value) in entries.sorted(by: { $0.key < $1.key }) {
        writer.put(ValueType.string, key.utf8)
        try put(value, depth: depth + 1)
      }
    }
  }

  private mutating func begin(_ type: UInt8) { writer.put(raw: type) }

  private func check(_ depth: Int) throws(StoreError) {
    guard depth < Self.deepest else {
      throw .invalidValue(reason: "arrays and dictionaries nested more than \(Self.deepest) deep")
    }
  }
}

/// The types' numbers. They never change.
private enum ValueType {
  static let string: UInt8 = 1
  static let integer: UInt8 = 2
  static let real: UInt8 = 3
  static let `true`: UInt8 = 4
  static let `false`: UInt8 = 5
  static let date: UInt8 = 6
  static let data: UInt8 = 7
  static let uid: UInt8 = 8
  static let array: UInt8 = 9
  static let dictionary: UInt8 = 10
}

/// Reads what `ValueWriter` wrote.
struct ValueReader: ~Escapable {
  private var reader: FieldReader

  @_lifetime(copy bytes)
  init(_ bytes: Span<UInt8>) {
    reader = FieldReader(bytes)
  }

  /// The value, behind which nothing follows. - Throws: `damaged`.
  mutating func whole() throws(StoreError) -> SettingValue {
    let value = try value(depth: 0)
    guard reader.remainder.isEmpty else { throw .damaged(what: "a setting") }
    return value
  }

  private mutating func value(depth: Int) throws(StoreError) -> SettingValue {
    guard depth <= ValueWriter.deepest else { throw .damaged(what: "a setting") }
    switch try reader.integer(UInt8.self) {
    case ValueType.string: return .string(try text())
    case ValueType.integer:
      let number = Int128(bitPattern: try reader.integer(UInt128.self))
      guard SettingValue.integers.contains(number) else { throw .damaged(what: "a setting") }
      return .integer(number)
    case ValueType.real: return .real(Double(bitPattern: try reader.integer(UInt64.self)))
    case ValueType.true: return .bool(true)
    case ValueType.false: return .bool(false)
    case ValueType.date:
      return .date(SettingDate(seconds: Int64(bitPattern: try reader.integer(UInt64.self))))
    case ValueType.data: return .data(try content().array)
    case ValueType.uid: return .uid(try reader.integer(UInt64.self))
    case ValueType.array:
      var items: [SettingValue] = []
      for _ in 0..<(try reader.integer(UInt32.self)) { items.append(try value(depth: depth + 1)) }
      return .array(items)
    case ValueType.dictionary:
      var entries: [ExactString: SettingValue] = [:]
      for _ in 0..<(try reader.integer(UInt32.self)) {
        guard try reader.integer(UInt8.self) == ValueType.string else { throw .damaged(what: "a setting") }
        let key = try text()
        entries[key] = try value(depth: depth + 1)
      }
      return .dictionary(entries)
    default: throw .damaged(what: "a setting")
    }
  }

  @_lifetime(copy self)
  private mutating func content() throws(StoreError) -> Span<UInt8> {
    try reader.take(Int(try reader.integer(UInt32.self)))
  }

  private mutating func text() throws(StoreError) -> ExactString {
    guard let text = ExactString(utf8: try content()) else { throw .damaged(what: "a setting") }
    return text
  }
}
