/// Reads the fields of a message of Protocol Buffers, which came over the network.
///
/// It takes what https://protobuf.dev/programming-guides/encoding/ says and no more: groups, field numbers that don't exist,
/// lengths beyond the end and integers of more than 64 bits are refused. Fields that the caller does not know are skipped by it.
struct WireReader {
  private let bytes: ArraySlice<UInt8>
  private var position: Int

  init(_ bytes: ArraySlice<UInt8>) {
    (self.bytes, position) = (bytes, bytes.startIndex)
  }

  init(_ bytes: [UInt8]) {
    self.init(bytes[...])
  }

  /// The next field; nil at the end.
  mutating func next() throws(WireError) -> WireField? {
    guard position < bytes.endIndex else { return nil }
    let tag = try varint()
    let number = tag >> 3
    guard (1...536_870_911).contains(number) else { throw .malformed }
    switch tag & 7 {
    case 0: return WireField(number: number, value: .integer(try varint()))
    case 1: return WireField(number: number, value: .other(try take(8)))
    case 2:
      guard let count = Int(exactly: try varint()) else { throw .malformed }
      return WireField(number: number, value: .bytes(try take(count)))
    case 5: return WireField(number: number, value: .other(try take(4)))
    default: throw .malformed
    }
  }

  private mutating func take(_ count: Int) throws(WireError) -> ArraySlice<UInt8> {
    guard count <= bytes.endIndex &- position else { throw .malformed }
    defer { position &+= count }
    return bytes[position..<(position &+ count)]
  }

  private mutating func varint() throws(WireError) -> UInt64 {
    var value: UInt64 = 0
    for shift in stride(from: UInt64(0), to: 70, by: 7) {
      guard position < bytes.endIndex else { throw .malformed }
      let byte = bytes[position]
      position &+= 1
      // The tenth byte has the highest bit of 64 alone.
      guard shift < 63 || byte <= 1 else { throw .malformed }
      value |= UInt64(byte & 0x7F) << shift
      if byte < 0x80 { return value }
    }
    throw .malformed
  }
}

/// A field with its value, whose meaning the message decides.
struct WireField {
  enum Value {
    case integer(UInt64)
    /// Text, bytes or a message.
    case bytes(ArraySlice<UInt8>)
    /// Of four or eight bytes, which no message of etcd's API uses.
    case other(ArraySlice<UInt8>)
  }

  let number: UInt64
  let value: Value

  /// A `uint64`, or an enumeration.
  func unsigned() throws(WireError) -> UInt64 {
    guard case .integer(let integer) = value else { throw .malformed }
    return integer
  }

  /// An `int64`.
  func signed() throws(WireError) -> Int64 {
    Int64(bitPattern: try unsigned())
  }

  func bool() throws(WireError) -> Bool {
    try unsigned() != 0
  }

  func bytes() throws(WireError) -> [UInt8] {
    Array(try slice())
  }

  /// UTF-8, for a person: what is not valid is replaced.
  func text() throws(WireError) -> String {
    String(decoding: try slice(), as: UTF8.self)
  }

  func message() throws(WireError) -> WireReader {
    WireReader(try slice())
  }

  private func slice() throws(WireError) -> ArraySlice<UInt8> {
    guard case .bytes(let slice) = value else { throw .malformed }
    return slice
  }
}

/// Bytes that are not the message that was expected.
enum WireError: Error {
  case malformed
}
