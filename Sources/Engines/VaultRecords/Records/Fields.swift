package import Model

/// Writes tagged fields: a tag of 1 byte, a length of 4 bytes, the bytes. All integers are big-endian.
///
/// The one encoding of everything that is sealed or bound, so that no two lists of fields have the same
/// bytes.
package struct FieldWriter {
  package private(set) var bytes: [UInt8] = []

  package init(capacity: Int = 128) {
    bytes.reserveCapacity(capacity)
  }

  package mutating func put(_ tag: UInt8, _ content: some Collection<UInt8>) {
    bytes.append(tag)
    put(raw: UInt32(truncatingIfNeeded: content.count))
    bytes.append(contentsOf: content)
  }

  /// The same; the generic one takes longer.
  package mutating func put(_ tag: UInt8, _ content: [UInt8]) {
    bytes.append(tag)
    put(raw: UInt32(truncatingIfNeeded: content.count))
    bytes += content
  }

  package mutating func put(_ tag: UInt8, _ integer: some FixedWidthInteger & UnsignedInteger) {
    bytes.append(tag)
    put(raw: UInt32(integer.bitWidth / 8))
    put(raw: integer)
  }

  package mutating func put(_ tag: UInt8, _ key: ItemKey) {
    bytes.append(tag)
    put(raw: 16 as UInt32)
    put(raw: key.high)
    put(raw: key.low)
  }

  /// Bytes without tag and length.
  package mutating func put(raw content: some Collection<UInt8>) {
    bytes.append(contentsOf: content)
  }

  /// The same; the generic one takes longer.
  package mutating func put(raw content: [UInt8]) {
    bytes += content
  }

  /// Zeros without tag and length.
  mutating func put(zeros count: Int) {
    for _ in 0..<count { bytes.append(0) }
  }

  /// An integer without tag and length.
  package mutating func put<Integer: FixedWidthInteger & UnsignedInteger>(raw integer: Integer) {
    let count = Integer.bitWidth / 8
    if count > 8 { put(UInt64(truncatingIfNeeded: integer >> 64), bytes: count - 8) }
    put(UInt64(truncatingIfNeeded: integer), bytes: min(count, 8))
  }

  /// The lowest bytes. Of one type: arithmetic on a type that is known to the caller alone takes longer.
  private mutating func put(_ integer: UInt64, bytes count: Int) {
    for byte in 1...count {
      bytes.append(UInt8(truncatingIfNeeded: integer >> UInt64(8 * (count - byte))))
    }
  }
}

/// Reads the fields that `FieldWriter` wrote. It never traps: bytes that are no fields are `damaged`.
package struct FieldReader: ~Escapable {
  private var rest: Span<UInt8>

  @_lifetime(copy bytes)
  package init(_ bytes: Span<UInt8>) {
    rest = bytes
  }

  /// The next field; nil: that was the last one.
  @_lifetime(copy self)
  package mutating func next() throws(StoreError) -> Field? {
    guard !rest.isEmpty else { return nil }
    let tag = try integer(UInt8.self)
    let count = try integer(UInt32.self)
    return Field(tag: tag, bytes: try take(Int(count)))
  }

  /// An integer without tag and length.
  package mutating func integer<Integer: FixedWidthInteger & UnsignedInteger>(
    _ type: Integer.Type
  ) throws(StoreError) -> Integer {
    Field(tag: 0, bytes: try take(Integer.bitWidth / 8)).value(type)
  }

  /// The next `count` bytes.
  @_lifetime(copy self)
  package mutating func take(_ count: Int) throws(StoreError) -> Span<UInt8> {
    guard count <= rest.count else { throw .damaged(what: "fields") }
    let taken = rest.extracting(first: count)
    rest = rest.extracting(droppingFirst: count)
    return taken
  }

  /// The bytes that were not read yet.
  package var remainder: Span<UInt8> {
    @_lifetime(copy self)
    get { rest }
  }
}

/// One field; its bytes are borrowed from what is being read.
package struct Field: ~Escapable {
  package let tag: UInt8
  package let bytes: Span<UInt8>

  @_lifetime(copy bytes)
  init(tag: UInt8, bytes: Span<UInt8>) {
    self.tag = tag
    self.bytes = bytes
  }

  package func integer<Integer: FixedWidthInteger & UnsignedInteger>(
    _ type: Integer.Type
  ) throws(StoreError) -> Integer {
    guard bytes.count == Integer.bitWidth / 8 else { throw .damaged(what: "fields") }
    return value(type)
  }

  /// The bytes as an integer of as many, big-endian.
  fileprivate func value<Integer: FixedWidthInteger & UnsignedInteger>(_ type: Integer.Type) -> Integer {
    // Arithmetic on a type that is known to the caller alone takes longer.
    var (high, low): (UInt64, UInt64) = (0, 0)
    for index in bytes.indices {
      high = high << 8 | low >> 56
      low = low << 8 | UInt64(bytes[index])
    }
    guard Integer.bitWidth > 64 else { return Integer(truncatingIfNeeded: low) }
    return Integer(truncatingIfNeeded: high) << 64 | Integer(truncatingIfNeeded: low)
  }

  package func string() throws(StoreError) -> ExactString {
    guard let string = ExactString(utf8: bytes) else { throw .damaged(what: "fields") }
    return string
  }
}
