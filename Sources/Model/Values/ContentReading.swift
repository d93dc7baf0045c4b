/// Reads the content of a setting piece by piece.
///
/// Both who writes to an open file and who commits it are judged by the same readers: what is refused byte
/// by byte and what is refused as a whole can't differ.
protocol ContentReading: Sendable {
  /// Takes the next byte. False: nothing that could follow makes a value of it; the reader is spoiled.
  mutating func append(_ byte: UInt8) -> Bool

  mutating func append(_ bytes: Span<UInt8>) -> Bool

  /// The value that was read, nil where it is not complete.
  mutating func finish() -> SettingValue?
}

extension ContentReading {
  mutating func append(_ bytes: Span<UInt8>) -> Bool {
    for index in bytes.indices where !append(bytes[index]) { return false }
    return true
  }
}

extension SettingType {
  var reading: any ContentReading {
    switch self {
    case .string: TextReading()
    case .integer: BlankReading(IntegerReading())
    case .real: BlankReading(RealReading())
    case .bool: BlankReading(BoolReading())
    case .date: BlankReading(DateReading())
    case .data: DataReading()
    case .array: ContainerReading(opening: ASCII.openBracket)
    case .dictionary: ContainerReading(opening: ASCII.openBrace)
    }
  }
}

/// A value with blanks around it.
struct BlankReading<Value: ContentReading>: ContentReading {
  private enum Place {
    case before, inside, after
  }

  private var value: Value
  private var place = Place.before
  private var result: SettingValue?

  init(_ value: Value) {
    self.value = value
  }

  mutating func append(_ byte: UInt8) -> Bool {
    guard ASCII.isBlank(byte) else { return appendInside(byte) }
    guard place == .inside else { return true }
    // The value can't go on after a blank, so it has to be complete here.
    place = .after
    result = value.finish()
    return result != nil
  }

  mutating func finish() -> SettingValue? {
    place == .inside ? value.finish() : result
  }

  private mutating func appendInside(_ byte: UInt8) -> Bool {
    guard place != .after else { return false }
    place = .inside
    return value.append(byte)
  }
}

/// Content that is its own value.
struct DataReading: ContentReading {
  mutating func append(_ byte: UInt8) -> Bool { true }

  mutating func append(_ bytes: Span<UInt8>) -> Bool { true }

  /// The codec takes the bytes as they are; nothing is kept here.
  mutating func finish() -> SettingValue? { nil }
}

/// UTF-8 without NUL.
struct TextReading: ContentReading {
  private var utf8 = UTF8Check()

  mutating func append(_ byte: UInt8) -> Bool {
    byte != 0 && utf8.append(byte)
  }

  /// The codec takes the text as it is; nothing is kept here.
  mutating func finish() -> SettingValue? { nil }
}

/// JSON that begins with `opening`, or an XML property list, which only its own parser can judge.
struct ContainerReading: ContentReading {
  private var json: JSONReading
  private var isXML: Bool?

  init(opening: UInt8) {
    json = JSONReading(opening: opening)
  }

  mutating func append(_ byte: UInt8) -> Bool {
    if isXML == nil, !ASCII.isBlank(byte) { isXML = byte == ASCII.less }
    return isXML == true || json.append(byte)
  }

  mutating func finish() -> SettingValue? {
    isXML == true ? nil : json.finish()
  }
}
