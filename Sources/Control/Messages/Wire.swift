import Model

/// Encodes values one behind the other for the control protocol: integers little-endian, texts and lists behind their
/// length.
struct WireWriter {
  private(set) var bytes: [UInt8] = []

  mutating func put(_ integer: some FixedWidthInteger) {
    for shift in stride(from: 0, to: type(of: integer).bitWidth, by: 8) {
      bytes.append(UInt8(truncatingIfNeeded: integer >> shift))
    }
  }

  mutating func put(_ flag: Bool) { bytes.append(flag ? 1 : 0) }

  /// With the length before them.
  mutating func put(_ content: some Collection<UInt8>) {
    put(UInt32(clamping: content.count))
    bytes.append(contentsOf: content)
  }

  mutating func put(_ text: String) { put(text.utf8) }

  mutating func put(_ name: ExactString) { put(name.utf8) }

  mutating func put(_ item: ItemID) { put(item.rawValue.utf8) }

  mutating func put<Value>(_ value: Value?, _ put: (inout WireWriter, Value) -> Void) {
    self.put(value != nil)
    if let value { put(&self, value) }
  }

  mutating func put<Value>(_ values: [Value], _ put: (inout WireWriter, Value) -> Void) {
    self.put(UInt32(clamping: values.count))
    for value in values { put(&self, value) }
  }
}

/// Decodes what `WireWriter` encoded. Other bytes are the error `unreadable`; it never traps.
struct WireReader {
  private var rest: ArraySlice<UInt8>

  init(_ bytes: [UInt8]) {
    rest = bytes[...]
  }

  mutating func integer<Integer: FixedWidthInteger>(
    _ type: Integer.Type = Integer.self
  ) throws(StoreError) -> Integer {
    try take(Integer.bitWidth / 8).reversed().reduce(0) { $0 << 8 | Integer(truncatingIfNeeded: $1) }
  }

  mutating func flag() throws(StoreError) -> Bool {
    switch try integer(UInt8.self) {
    case 0: false
    case 1: true
    default: throw Self.unreadable
    }
  }

  mutating func content() throws(StoreError) -> [UInt8] {
    Array(try take(Int(try integer(UInt32.self))))
  }

  mutating func name() throws(StoreError) -> ExactString {
    guard let name = ExactString(utf8: try content()) else { throw Self.unreadable }
    return name
  }

  mutating func text() throws(StoreError) -> String { try name().string }

  mutating func itemID() throws(StoreError) -> ItemID { ItemID(rawValue: try text()) }

  mutating func optional<Value>(
    _ read: (inout WireReader) throws(StoreError) -> Value
  ) throws(StoreError) -> Value? {
    try flag() ? try read(&self) : nil
  }

  mutating func list<Value>(
    _ read: (inout WireReader) throws(StoreError) -> Value
  ) throws(StoreError) -> [Value] {
    var values: [Value] = []
    for _ in 0..<(try integer(UInt32.self)) { values.append(try read(&self)) }
    return values
  }

  /// - Throws: `unreadable` where bytes are left over.
  func finish() throws(StoreError) {
    guard rest.isEmpty else { throw Self.unreadable }
  }

  static let unreadable = StoreError.damaged(what: "a message of another process")

  private mutating func take(_ count: Int) throws(StoreError) -> ArraySlice<UInt8> {
    guard count <= rest.count else { throw Self.unreadable }
    defer { rest = rest.dropFirst(count) }
    return rest.prefix(count)
  }
}
