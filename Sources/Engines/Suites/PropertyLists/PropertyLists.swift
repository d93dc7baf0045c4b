public import Model

/// Property lists as bytes: XML as Apple's writers lay it out, and the binary form.
///
/// This is code of our own, on no library. libplist 2.2.0, which is what Debian has, reads `010` as 8, text
/// that is no number as 0, dates outside 1933 … 2069 as others, strings only up to their first NUL, and a file
/// that was cut off before `</plist>` as if it were whole: what reads so and writes back destroys settings.
/// Where writers differ, the rule is that a list reads as Foundation reads it, or not at all.
public struct PropertyLists: PropertyListCoding {
  /// As many arrays and dictionaries inside each other as Foundation reads; one more makes a list unreadable
  /// for every program that uses it.
  public static let deepest = 512

  /// Seconds since 1970 that every reader keeps: those whose binary form, a double since 2001, is exact.
  public static let dates: ClosedRange<Int64> = -8_000_000_000_000_000...8_000_000_000_000_000

  /// There is nothing to configure.
  public init() {}

  /// The value as an XML property list, ended by a line feed.
  ///
  /// Characters that XML 1.0 can't hold are written as character references, which Foundation reads.
  /// - Throws: `invalidValue` for what no property list can hold.
  public func xml(_ value: SettingValue) throws(StoreError) -> [UInt8] {
    try Self.check(value)
    var writer = XMLWriter()
    writer.document(value)
    return writer.bytes
  }

  /// The value that an XML property list holds; nil: `text` is none.
  public func value(xml text: some Collection<UInt8>) -> SettingValue? {
    let bytes = Array(text)
    guard !bytes.starts(with: BinaryReader.magic) else { return nil }
    return try? Self.read(xml: bytes)
  }
}

/// Why bytes are no property list. It names no value.
struct PropertyListError: Error {
  let reason: String

  init(_ reason: String) {
    self.reason = reason
  }
}

extension PropertyLists {
  /// The value that a file holds, in either form.
  static func read(_ bytes: [UInt8]) throws(PropertyListError) -> SettingValue {
    guard bytes.starts(with: BinaryReader.magic) else { return try read(xml: bytes) }
    var reader = try BinaryReader(bytes)
    return try reader.document()
  }

  private static func read(xml bytes: [UInt8]) throws(PropertyListError) -> SettingValue {
    var reader = XMLReader(try XMLText.utf8(bytes))
    return try reader.document()
  }

  /// The binary form, for what XML has no way to say, or not within the size of a file (a value of 16 MiB has
  /// 80 MiB in XML where it is all “&”).
  static func binary(_ value: SettingValue) -> [UInt8] {
    var writer = BinaryWriter()
    return writer.document(value)
  }

  /// - Throws: `invalidValue` for what no property list can hold, or no reader would read.
  static func check(_ value: SettingValue, depth: Int = 0) throws(StoreError) {
    switch value {
    case .integer(let number) where !SettingValue.integers.contains(number):
      throw .invalidValue(reason: "an integer outside −2⁶³ … 2⁶⁴−1")
    case .date(let date) where !dates.contains(date.seconds):
      throw .invalidValue(reason: "a date that is too far away")
    case .array(let items):
      try checkDepth(depth)
      for item in items { try check(item, depth: depth + 1) }
    case .dictionary(let entries):
      try checkDepth(depth)
      for item in entries.values { try check(item, depth: depth + 1) }
    default: break
    }
  }

  private static func checkDepth(_ depth: Int) throws(StoreError) {
    guard depth < deepest else {
      throw .invalidValue(reason: "arrays and dictionaries nested more than \(deepest) deep")
    }
  }

  /// The value of a dictionary: with nothing but the key `CF$UID`, a keyed archiver's reference.
  static func dictionary(_ entries: [ExactString: SettingValue]) -> SettingValue {
    if entries.count == 1, case .integer(let number)? = entries["CF$UID"], number >= 0 {
      return .uid(UInt64(number))
    }
    return .dictionary(entries)
  }
}
