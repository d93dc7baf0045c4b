import Model

/// Writes tagged fields: a tag of 1 byte, a length of 4 bytes, the bytes. All integers are big-endian.
///
/// The one encoding of everything that is sealed or bound, so that no two lists of fields have the same
/// bytes.
struct FieldWriter {
  private(set) var bytes: [UInt8] = []

  init(capacity: Int = 128) {
    bytes.reserveCapacity(capacity)
  }

  mutating func put(_ tag: UInt8, _ content: some Collection<UInt8>) {
    bytes.append(tag)
    put(raw: UInt32(truncatingIfNeeded: content.count))
    bytes.append(contentsOf: content)
  }

  mutating func put(_ tag: UInt8, _ integer: some FixedWidthInteger & UnsignedInteger) {
    bytes.append(tag)
    put(raw: UInt32(integer.bitWidth / 8))
    put(raw: integer)
  }

  mutating func put(_ tag: UInt8, _ key: ItemKey) {
    bytes.append(tag)
    put(raw: 16 as UInt32)
    put(raw: key.high)
    put(raw: key.low)
  }

  /// Bytes without tag and length.
  mutating func put(raw content: some Collection<UInt8>) {
    bytes.append(contentsOf: content)
  }

  /// An integer without tag and length.
  mutating func put<Integer: FixedWidthInteger & UnsignedInteger>(raw integer: Integer) {
    unsafe withUnsafeBytes(of: integer.bigEndian) { unsafe bytes.append(contentsOf: $0) }
  }
}

/// Reads what `FieldWriter` wrote. It never traps: bytes that are no fields are `damaged`.
@safe struct FieldReader {
  private var rest: UnsafeRawBufferPointer

  init(_ bytes: UnsafeRawBufferPointer) {
    unsafe rest = bytes
  }

  /// The next field; nil: that was the last one.
  mutating func next() throws(StoreError) -> Field? {
    guard unsafe !rest.isEmpty else { return nil }
    let tag = try integer(UInt8.self)
    let count = try integer(UInt32.self)
    return try unsafe Field(tag: tag, bytes: take(Int(count)))
  }

  /// An integer without tag and length.
  mutating func integer<Integer: FixedWidthInteger & UnsignedInteger & BitwiseCopyable>(
    _ type: Integer.Type
  ) throws(StoreError) -> Integer {
    let bytes = try unsafe take(Integer.bitWidth / 8)
    return try unsafe Field(tag: 0, bytes: bytes).integer(type)
  }

  /// The next `count` bytes.
  mutating func take(_ count: Int) throws(StoreError) -> UnsafeRawBufferPointer {
    guard unsafe count <= rest.count else { throw .damaged(what: "fields") }
    // SAFETY: the bound was just checked.
    defer { unsafe rest = UnsafeRawBufferPointer(rebasing: rest[count...]) }
    return unsafe UnsafeRawBufferPointer(rebasing: rest[..<count])
  }

  /// The bytes that were not read yet.
  var remainder: UnsafeRawBufferPointer { unsafe rest }
}

/// One field; its bytes are borrowed from what is being read.
@safe struct Field {
  let tag: UInt8
  let bytes: UnsafeRawBufferPointer

  func integer<Integer: FixedWidthInteger & UnsignedInteger & BitwiseCopyable>(
    _ type: Integer.Type
  ) throws(StoreError) -> Integer {
    guard unsafe bytes.count == Integer.bitWidth / 8 else { throw .damaged(what: "fields") }
    // SAFETY: there are as many bytes as the integer has.
    return unsafe Integer(bigEndian: bytes.loadUnaligned(as: Integer.self))
  }

  func string() throws(StoreError) -> ExactString {
    let utf8 = unsafe bytes.assumingMemoryBound(to: UInt8.self)
    guard let string = unsafe String(validating: utf8, as: UTF8.self) else {
      throw .damaged(what: "fields")
    }
    return ExactString(string)
  }
}
