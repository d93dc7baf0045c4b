import Model

/// Appends numbers, the lowest byte first.
struct ByteWriter {
  var bytes: [UInt8] = []

  mutating func append(_ number: UInt64, size: Int) {
    for byte in 0..<size { bytes.append(UInt8(truncatingIfNeeded: number >> UInt64(8 * byte))) }
  }

  mutating func append(_ time: Timestamp) {
    append(UInt64(bitPattern: time.seconds), size: 8)
    append(UInt64(time.nanoseconds), size: 4)
  }
}

/// Takes numbers from the front; nil: there are not enough bytes.
struct ByteReader: ~Escapable {
  private let bytes: Span<UInt8>
  private var position = 0

  @_lifetime(copy bytes)
  init(_ bytes: Span<UInt8>) {
    self.bytes = bytes
  }

  mutating func number(_ size: Int) -> UInt64? {
    guard bytes.count - position >= size else { return nil }
    defer { position += size }
    return (0..<size).reduce(0) { $0 | UInt64(bytes[position + $1]) << UInt64(8 * $1) }
  }

  mutating func timestamp() -> Timestamp? {
    guard let seconds = number(8), let nanoseconds = number(4) else { return nil }
    return Timestamp(
      seconds: Int64(bitPattern: seconds), nanoseconds: UInt32(min(nanoseconds, 999_999_999)))
  }

  /// nil also where it is not UTF-8.
  mutating func string(_ count: Int) -> ExactString? {
    guard bytes.count - position >= count else { return nil }
    defer { position += count }
    return ExactString(utf8: bytes.extracting(position..<position + count))
  }

  func rest() -> [UInt8] {
    var rest: [UInt8] = []
    rest.reserveCapacity(bytes.count - position)
    for index in position..<bytes.count { rest.append(bytes[index]) }
    return rest
  }
}
