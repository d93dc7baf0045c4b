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
  private static let removed = UInt64(UInt32.max)

  var bytes: [UInt8] {
    var body = ByteWriter()
    body.bytes.reserveCapacity(Self.header + key.utf8.count)
    body.append(UInt64(key.utf8.count), size: 4)
    body.append(UInt64(bitPattern: time?.seconds ?? 0), size: 8)
    body.append(time.map { UInt64($0.nanoseconds) } ?? Self.removed, size: 4)
    body.append(hash, size: 8)
    body.bytes += key.utf8
    var whole = ByteWriter()
    whole.append(StableHash.of(body.bytes.span), size: 8)
    return whole.bytes + body.bytes
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

  /// The number of whole records, how many bytes they take, and the time of the last one, by their lengths alone.
  ///
  /// Only the last one's checksum is compared: where it is wrong, all are.
  static func measure(_ bytes: [UInt8]) -> (count: Int, length: Int, last: Timestamp?) {
    var (count, last, end) = (0, 0, 0)
    while let length = length(of: bytes, at: end), length <= bytes.count - end {
      (count, last, end) = (count &+ 1, end, end &+ length)
    }
    guard count > 0 else { return (0, 0, nil) }
    if let (record, _) = record(bytes.span.extracting(last..<end)) { return (count, end, record.time) }
    let (records, length) = parse(bytes)
    return (records.count, length, records.last?.time)
  }

  private static func length(of bytes: [UInt8], at start: Int) -> Int? {
    guard bytes.count - start >= header else { return nil }
    let keyLength = (0..<4).reduce(0) { $0 | Int(bytes[start + 8 + $1]) << (8 * $1) }
    return header + keyLength
  }

  private static func record(_ bytes: Span<UInt8>) -> (KeyTimeRecord, Int)? {
    var reader = ByteReader(bytes)
    guard let checksum = reader.number(8), let keyLength = reader.number(4), let seconds = reader.number(8),
      let fraction = reader.number(4), let hash = reader.number(8)
    else { return nil }
    let length = header + Int(keyLength)
    guard let key = reader.string(Int(keyLength)), StableHash.of(bytes.extracting(8..<length)) == checksum
    else { return nil }
    // A file that another program made may have any number.
    let time =
      fraction == removed
      ? nil
      : Timestamp(
        seconds: Int64(bitPattern: seconds), nanoseconds: UInt32(min(fraction, 999_999_999)))
    return (KeyTimeRecord(key: key, time: time, hash: hash), length)
  }
}
