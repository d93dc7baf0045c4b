/// Writes a message of Protocol Buffers: the fields in the order of the calls.
///
/// A value that is the default (0, false, empty) is left out, but for `present`.
struct WireWriter {
  private(set) var bytes: [UInt8] = []

  /// A `uint64`, or an enumeration.
  mutating func unsigned(_ field: UInt64, _ value: UInt64) {
    guard value != 0 else { return }
    varint(field << 3)
    varint(value)
  }

  /// An `int64`.
  mutating func signed(_ field: UInt64, _ value: Int64) {
    unsigned(field, UInt64(bitPattern: value))
  }

  /// An `int64` of a `oneof`, where 0 is a value too.
  mutating func present(_ field: UInt64, _ value: Int64) {
    varint(field << 3)
    varint(UInt64(bitPattern: value))
  }

  mutating func bool(_ field: UInt64, _ value: Bool) {
    unsigned(field, value ? 1 : 0)
  }

  mutating func bytes(_ field: UInt64, _ value: [UInt8]) {
    if !value.isEmpty { present(field, value) }
  }

  /// Bytes of a `oneof`, where none are a value too.
  mutating func present(_ field: UInt64, _ value: [UInt8]) {
    varint(field << 3 | 2)
    varint(UInt64(value.count))
    bytes += value
  }

  /// A message, also an empty one.
  mutating func message(_ field: UInt64, _ value: WireWriter) {
    present(field, value.bytes)
  }

  private mutating func varint(_ value: UInt64) {
    var rest = value
    while rest >= 0x80 {
      bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
      rest >>= 7
    }
    bytes.append(UInt8(truncatingIfNeeded: rest))
  }
}
