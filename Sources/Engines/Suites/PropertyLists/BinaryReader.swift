import Model

/// Reads a binary property list, as hostile as it may be: every offset, count and reference is checked, no
/// object holds itself, and what little bytes unfold to by sharing objects is bounded.
struct BinaryReader {
  static let magic = Array("bplist00".utf8)

  /// Values that a list may unfold to: a file of some hundred bytes can say 2⁵¹².
  private static let most = 4_000_000
  /// Kinds of objects: the upper half of their first byte.
  enum Kind {
    static let simple = 0x0, integer = 0x1, real = 0x2, date = 0x3, data = 0x4, ascii = 0x5, utf16 = 0x6
    static let uid = 0x8, array = 0xA, dictionary = 0xD
  }

  let bytes: [UInt8]
  private let offsetSize: Int
  let referenceSize: Int
  private let count: Int
  let top: Int
  private let table: Int
  private struct Object {
    var value: SettingValue
    /// How many values it unfolds to, and how many containers deep it is.
    var size = 1
    var height = 0
  }

  private var objects: [Int: Object] = [:]
  private var unfinished: Set<Int> = []

  init(_ bytes: [UInt8]) throws(PropertyListError) {
    guard bytes.count >= 8 + 32 else { throw PropertyListError("it ends too early") }
    self.bytes = bytes
    let trailer = bytes.count - 32
    offsetSize = Int(bytes[trailer + 6])
    referenceSize = Int(bytes[trailer + 7])
    guard let count = Self.number(bytes, at: trailer + 8, size: 8),
      let top = Self.number(bytes, at: trailer + 16, size: 8),
      let table = Self.number(bytes, at: trailer + 24, size: 8),
      (1...8).contains(offsetSize), (1...8).contains(referenceSize),
      count <= trailer, top < count, table >= 8, table <= trailer, (trailer - table) / offsetSize >= count
    else { throw PropertyListError("its trailer makes no sense") }
    (self.count, self.top, self.table) = (count, top, table)
  }

  mutating func document() throws(PropertyListError) -> SettingValue {
    try object(top, depth: 0)
  }

  /// An unsigned number, nil: outside of the file or of `Int`.
  static func number(_ bytes: [UInt8], at start: Int, size: Int) -> Int? {
    guard start >= 0, start <= bytes.count - size else { return nil }
    return Int(exactly: bytes[start..<start + size].reduce(UInt64(0)) { $0 << 8 | UInt64($1) })
  }
}

extension BinaryReader {
  mutating func object(_ index: Int, depth: Int) throws(PropertyListError) -> SettingValue {
    if let known = objects[index] {
      guard depth + known.height <= PropertyLists.deepest else {
        throw PropertyListError("it is nested too deep")
      }
      return known.value
    }
    let offset = try offset(of: index)
    guard depth <= PropertyLists.deepest, unfinished.insert(index).inserted else {
      throw PropertyListError("it is nested too deep")
    }
    let (kind, low) = (Int(bytes[offset] >> 4), Int(bytes[offset] & 15))
    let isContainer = kind == Kind.array || kind == Kind.dictionary
    let object =
      isContainer
      ? try container(kind, low, offset + 1, depth) : Object(value: try scalar(kind, low, offset + 1))
    unfinished.remove(index)
    objects[index] = object
    return object.value
  }

  /// Where an object is.
  func offset(of index: Int) throws(PropertyListError) -> Int {
    guard index < count, let offset = Self.number(bytes, at: table + index * offsetSize, size: offsetSize),
      offset >= 8, offset < table
    else { throw PropertyListError("a reference to nothing") }
    return offset
  }

  private mutating func container(
    _ kind: Int, _ low: Int, _ start: Int, _ depth: Int
  ) throws(PropertyListError) -> Object {
    guard depth < PropertyLists.deepest else { throw PropertyListError("it is nested too deep") }
    let fields = kind == Kind.array ? 1 : 2
    let (first, count) = try length(low, start, unit: referenceSize * fields)
    var items: [SettingValue] = []
    var object = Object(value: .array([]), height: 1)
    for reference in try references(first, fields * count) {
      items.append(try self.object(reference, depth: depth + 1))
      object.size += objects[reference]?.size ?? 1
      object.height = max(object.height, 1 + (objects[reference]?.height ?? 0))
      guard object.size <= Self.most else { throw PropertyListError("it unfolds to too many values") }
    }
    object.value = fields == 1 ? .array(items) : try dictionary(items[..<count], items[count...])
    return object
  }

  private func dictionary(
    _ keys: ArraySlice<SettingValue>, _ values: ArraySlice<SettingValue>
  ) throws(PropertyListError) -> SettingValue {
    var entries: [ExactString: SettingValue] = [:]
    for (key, value) in zip(keys, values) {
      guard case .string(let key) = key else { throw PropertyListError("a key that is no string") }
      entries[key] = value
    }
    return PropertyLists.dictionary(entries)
  }

  private func references(_ start: Int, _ count: Int) throws(PropertyListError) -> [Int] {
    let references = (0..<count).compactMap {
      Self.number(bytes, at: start + $0 * referenceSize, size: referenceSize)
    }
    guard references.count == count, references.allSatisfy({ $0 < self.count }) else {
      throw PropertyListError("a reference to nothing")
    }
    return references
  }

  private func scalar(_ kind: Int, _ low: Int, _ start: Int) throws(PropertyListError) -> SettingValue {
    switch kind {
    case Kind.simple where low == 8 || low == 9: return .bool(low == 9)
    case Kind.integer: return .integer(try integer(start, size: 1 << low))
    case Kind.real: return .real(try real(start, size: 1 << low))
    case Kind.date where low == 3: return .date(try date(start))
    case Kind.uid: return .uid(try bits(start, size: low + 1))
    case Kind.data: return .data(Array(try content(low, start, unit: 1)))
    case Kind.ascii: return .string(try ascii(content(low, start, unit: 1)))
    case Kind.utf16: return .string(try utf16(content(low, start, unit: 2)))
    default: throw PropertyListError("a value of a kind that settings do not have")
    }
  }
}

extension BinaryReader {
  private func bits(_ start: Int, size: Int) throws(PropertyListError) -> UInt64 {
    guard size <= 8, start <= table - size else { throw PropertyListError("a value that ends too early") }
    return bytes[start..<start + size].reduce(0) { $0 << 8 | UInt64($1) }
  }

  /// Of 1, 2 and 4 bytes unsigned, of 8 signed, of 16 signed but in the range of property lists.
  private func integer(_ start: Int, size: Int) throws(PropertyListError) -> Int128 {
    switch size {
    case 1, 2, 4: return Int128(try bits(start, size: size))
    case 8: return Int128(Int64(bitPattern: try bits(start, size: size)))
    case 16:
      let high = Int64(bitPattern: try bits(start, size: 8))
      let number = Int128(high) << 64 | Int128(try bits(start + 8, size: 8))
      guard SettingValue.integers.contains(number) else { throw PropertyListError("an integer too large") }
      return number
    default: throw PropertyListError("an integer that is none")
    }
  }

  private func real(_ start: Int, size: Int) throws(PropertyListError) -> Double {
    let bits = try bits(start, size: size)
    guard size == 4 || size == 8 else { throw PropertyListError("a real that is none") }
    let real = size == 4 ? Double(Float(bitPattern: UInt32(bits))) : Double(bitPattern: bits)
    return real.isNaN ? .nan : real
  }

  private func date(_ start: Int) throws(PropertyListError) -> SettingDate {
    let seconds = Double(bitPattern: try bits(start, size: 8))
    guard let date = SettingDate(sinceReference: seconds), PropertyLists.dates.contains(date.seconds) else {
      throw PropertyListError("a date that is none")
    }
    return date
  }

  private func ascii(_ bytes: ArraySlice<UInt8>) throws(PropertyListError) -> ExactString {
    guard bytes.allSatisfy({ $0 < 0x80 }) else { throw PropertyListError("a string that is not Unicode") }
    return ExactString(String(decoding: bytes, as: UTF8.self))
  }

  func utf16(_ bytes: ArraySlice<UInt8>) throws(PropertyListError) -> ExactString {
    let units = stride(from: bytes.startIndex, to: bytes.endIndex, by: 2).map {
      UInt16(bytes[$0]) << 8 | UInt16(bytes[$0 + 1])
    }
    guard let text = String(validating: units, as: UTF16.self) else {
      throw PropertyListError("a string that is not Unicode")
    }
    return ExactString(text)
  }

  func content(_ low: Int, _ start: Int, unit: Int) throws(PropertyListError) -> ArraySlice<UInt8> {
    let (first, count) = try length(low, start, unit: unit)
    return bytes[first..<first + count * unit]
  }

  /// Where the content of an object begins and how many units it has; they all lie before the table.
  func length(_ low: Int, _ start: Int, unit: Int) throws(PropertyListError) -> (Int, Int) {
    var (first, count) = (start, low)
    if low == 15 {
      guard start < table, bytes[start] >> 4 == Kind.integer, bytes[start] & 15 <= 3 else {
        throw PropertyListError("a length that is none")
      }
      let size = 1 << Int(bytes[start] & 15)
      guard let number = Int(exactly: try bits(start + 1, size: size)) else {
        throw PropertyListError("a length that is none")
      }
      (first, count) = (start + 1 + size, number)
    }
    guard first <= table, count <= (table - first) / unit else {
      throw PropertyListError("a value that ends too early")
    }
    return (first, count)
  }
}
