/// The elements that a property list has.
enum XMLElement {
  case plist, dict, array, key, string, integer, real, date, data
  case `true`, `false`

  /// The element of a name; nil: a property list has no such element.
  ///
  /// `name` is packed as `XMLElement.pack` does, because comparing strings was half of the time of a read.
  init?(packed name: UInt64) {
    switch name {
    case Self.keyName: self = .key
    case Self.stringName: self = .string
    case Self.integerName: self = .integer
    case Self.dictName: self = .dict
    case Self.arrayName: self = .array
    case Self.realName: self = .real
    case Self.trueName: self = .true
    case Self.falseName: self = .false
    case Self.dateName: self = .date
    case Self.dataName: self = .data
    case Self.plistName: self = .plist
    default: return nil
    }
  }

  /// The bytes of a name of at most eight characters as one number.
  static func pack(_ name: some Sequence<UInt8>) -> UInt64 {
    name.reduce(0) { $0 << 8 | UInt64($1) }
  }

  private static let plistName = pack("plist".utf8)
  private static let dictName = pack("dict".utf8)
  private static let arrayName = pack("array".utf8)
  private static let keyName = pack("key".utf8)
  private static let stringName = pack("string".utf8)
  private static let integerName = pack("integer".utf8)
  private static let realName = pack("real".utf8)
  private static let dateName = pack("date".utf8)
  private static let dataName = pack("data".utf8)
  private static let trueName = pack("true".utf8)
  private static let falseName = pack("false".utf8)
}
