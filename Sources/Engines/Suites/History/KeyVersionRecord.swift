import Model
import Store

/// A value that a key had, as a file of `SettingHistoryFiles` keeps it.
///
/// On disk, all numbers little-endian: a checksum of what follows (`StableHash`, 8), the length of the rest (4), when it
/// was replaced (seconds 8, nanoseconds 4), what replaced it (1), the length of the suite's name (4) and the name, the same of the
/// key, the value as a property list in the binary form, in a dictionary under the empty name, and at the end the version's
/// number (8).
struct KeyVersionRecord: Equatable {
  let number: UInt64
  var suite: ExactString
  let key: ExactString
  let value: SettingValue
  let replaced: Timestamp
  let changes: VersionChanges

  private static let header = 8 + 4
  private static let trailer = 8

  var bytes: [UInt8] {
    var body = ByteWriter()
    body.append(replaced)
    body.append(UInt64(changes.rawValue), size: 1)
    for name in [suite, key] {
      body.append(UInt64(name.utf8.count), size: 4)
      body.bytes += name.utf8
    }
    body.bytes += PropertyLists.binary(.dictionary(["": value]))
    body.append(number, size: 8)
    var rest = ByteWriter()
    rest.append(UInt64(body.bytes.count), size: 4)
    rest.bytes += body.bytes
    var whole = ByteWriter()
    whole.append(StableHash.of(rest.bytes.span), size: 8)
    return whole.bytes + rest.bytes
  }

  /// Every whole record from the beginning, and where the last one ends.
  static func parse(_ bytes: [UInt8]) -> (records: [KeyVersionRecord], end: Int) {
    var (records, end): ([KeyVersionRecord], Int) = ([], 0)
    while let (record, length) = read(bytes.span.extracting(end...)) {
      end += length
      if let record { records.append(record) }
    }
    return (records, end)
  }

  /// The first record and its length, the record nil where its value can't be read; nil: it is not whole.
  private static func read(_ bytes: Span<UInt8>) -> (KeyVersionRecord?, Int)? {
    var reader = ByteReader(bytes)
    guard let checksum = reader.number(8), let length = reader.number(4), length <= SuiteFile.largest else {
      return nil
    }
    let whole = header + Int(length)
    guard Int(length) > trailer, bytes.count >= whole,
      StableHash.of(bytes.extracting(8..<whole)) == checksum
    else { return nil }
    return (content(bytes.extracting(header..<whole)), whole)
  }

  private static func content(_ bytes: Span<UInt8>) -> KeyVersionRecord? {
    let end = bytes.count - trailer
    var last = ByteReader(bytes.extracting(end...))
    var body = ByteReader(bytes.extracting(..<end))
    guard let number = last.number(trailer), let replaced = body.timestamp(), let changes = body.number(1),
      let length = body.number(4), let suite = body.string(Int(length)),
      let length = body.number(4), let key = body.string(Int(length)),
      case .dictionary(let values)? = try? PropertyLists.read(body.rest()), let value = values[""]
    else { return nil }
    return KeyVersionRecord(
      number: number, suite: suite, key: key, value: value, replaced: replaced,
      changes: VersionChanges(rawValue: UInt8(truncatingIfNeeded: changes)))
  }
}
