import Model

/// One line of the file of times: a key had this value at this time, or was removed.
///
/// On disk, all numbers little-endian: a checksum of what follows, the length of the key in bytes, seconds,
/// nanoseconds (2³²−1: the key was removed), the value's hash, the key.
struct KeyTimeRecord {
  let key: ExactString
  /// nil: the key was removed.
  let time: Timestamp?
  /// `StableHash` of the value that has this time.
  let hash: UInt64

  private static let header = 8 + 4 + 8 + 4 + 8
  private static let removed = UInt32.max

  var bytes: [UInt8] {
    var body: [UInt8] = []
    body.reserveCapacity(Self.header + key.utf8.count)
    Self.append(UInt64(key.utf8.count), 4, to: &body)
    Self.append(UInt64(bitPattern: time?.seconds ?? 0), 8, to: &body)
    Self.append(UInt64(time?.nanoseconds ?? Self.removed), 4, to: &body)
    Self.append(hash, 8, to: &body)
    body += key.utf8
    var bytes: [UInt8] = []
    Self.append(StableHash.of(body.span), 8, to: &bytes)
    return bytes + body
  }

  /// The records that are whole, and how many bytes they take: what follows was cut off by a crash.
  static func parse(_ bytes: [UInt8]) -> (records: [KeyTimeRecord], length: Int) {
    var records: [KeyTimeRecord] = []
    var position = 0
    while let (record, length) = record(bytes.span.extracting(position...)) {
      records.append(record)
      position += length
    }
    return (records, position)
  }

  private static func record(_ bytes: Span<UInt8>) -> (KeyTimeRecord, Int)? {
    guard bytes.count >= header else { return nil }
    let length = header + Int(number(bytes, 8, 4))
    guard bytes.count >= length,
      StableHash.of(bytes.extracting(8..<length)) == number(bytes, 0, 8),
      let key = ExactString(utf8: bytes.extracting(header..<length))
    else { return nil }
    let nanoseconds = UInt32(truncatingIfNeeded: number(bytes, 20, 4))
    // A file that another program made may have any number.
    let time =
      nanoseconds == removed
      ? nil
      : Timestamp(
        seconds: Int64(bitPattern: number(bytes, 12, 8)), nanoseconds: min(nanoseconds, 999_999_999))
    return (KeyTimeRecord(key: key, time: time, hash: number(bytes, 24, 8)), length)
  }

  private static func number(_ bytes: Span<UInt8>, _ offset: Int, _ size: Int) -> UInt64 {
    (0..<size).reduce(0) { $0 | UInt64(bytes[offset + $1]) << UInt64(8 * $1) }
  }

  private static func append(_ number: UInt64, _ size: Int, to bytes: inout [UInt8]) {
    for byte in 0..<size { bytes.append(UInt8(truncatingIfNeeded: number >> UInt64(8 * byte))) }
  }
}
