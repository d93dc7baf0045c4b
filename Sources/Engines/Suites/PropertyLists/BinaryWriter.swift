import Model

/// Writes binary property lists, the form that can hold every string.
struct BinaryWriter {
  private enum Node {
    case scalar(SettingValue)
    case array([Int])
    case dictionary([Int])
  }

  private var nodes: [Node] = []
  private var bytes = BinaryReader.magic

  mutating func document(_ value: SettingValue) -> [UInt8] {
    add(value)
    let referenceSize = Self.size(of: UInt64(nodes.count))
    var offsets: [Int] = []
    for node in nodes {
      offsets.append(bytes.count)
      write(node, referenceSize)
    }
    let table = bytes.count
    let offsetSize = Self.size(of: UInt64(table))
    for offset in offsets { append(UInt64(offset), size: offsetSize) }
    bytes += [0, 0, 0, 0, 0, 0, UInt8(offsetSize), UInt8(referenceSize)]
    for number in [offsets.count, 0, table] { append(UInt64(number), size: 8) }
    return bytes
  }

  /// Gives a value and what it holds their numbers, and returns the value's own.
  @discardableResult
  private mutating func add(_ value: SettingValue) -> Int {
    let index = nodes.count
    nodes.append(.scalar(value))
    switch value {
    case .array(let items):
      nodes[index] = .array(items.map { add($0) })
    case .dictionary(let entries):
      let entries = PropertyLists.sorted(entries.map { ($0.key, $0.value) })
      let keys = entries.map { add(.string($0.key)) }
      nodes[index] = .dictionary(keys + entries.map { add($0.value) })
    default: break
    }
    return index
  }

  private mutating func write(_ node: Node, _ referenceSize: Int) {
    switch node {
    case .scalar(let value): write(value)
    case .array(let references):
      mark(0xA0, count: references.count)
      for reference in references { append(UInt64(reference), size: referenceSize) }
    case .dictionary(let references):
      mark(0xD0, count: references.count / 2)
      for reference in references { append(UInt64(reference), size: referenceSize) }
    }
  }

  private mutating func write(_ value: SettingValue) {
    switch value {
    case .bool(let isTrue): bytes.append(isTrue ? 0x09 : 0x08)
    case .integer(let number): write(number)
    case .real(let number): mark(0x23, number.bitPattern)
    case .date(let date): mark(0x33, date.sinceReference.bitPattern)
    case .data(let data):
      mark(0x40, count: data.count)
      bytes += data
    case .uid(let number):
      let size = Self.size(of: number)
      bytes.append(0x80 | UInt8(size - 1))
      append(number, size: size)
    case .string(let string): write(string)
    case .array, .dictionary: break
    }
  }

  private mutating func write(_ number: Int128) {
    if let unsigned = UInt32(exactly: number) {
      let size = Self.size(of: UInt64(unsigned))
      bytes.append(0x10 | UInt8(size.trailingZeroBitCount))
      append(UInt64(unsigned), size: size)
    } else if let signed = Int64(exactly: number) {
      mark(0x13, UInt64(bitPattern: signed))
    } else {
      mark(0x14, 0)
      append(UInt64(truncatingIfNeeded: number), size: 8)
    }
  }

  private mutating func write(_ string: ExactString) {
    guard !string.utf8.allSatisfy({ $0 < 0x80 }) else {
      mark(0x50, count: string.utf8.count)
      bytes += string.utf8
      return
    }
    mark(0x60, count: string.string.utf16.count)
    for unit in string.string.utf16 { append(UInt64(unit), size: 2) }
  }
}

extension BinaryWriter {
  private static func size(of number: UInt64) -> Int {
    number <= 0xFF ? 1 : number <= 0xFFFF ? 2 : number <= 0xFFFF_FFFF ? 4 : 8
  }

  private mutating func append(_ number: UInt64, size: Int) {
    for byte in (0..<size).reversed() { bytes.append(UInt8(truncatingIfNeeded: number >> UInt64(8 * byte))) }
  }

  private mutating func mark(_ kind: UInt8, _ content: UInt64) {
    bytes.append(kind)
    append(content, size: 8)
  }

  private mutating func mark(_ kind: UInt8, count: Int) {
    guard count >= 15 else { return bytes.append(kind | UInt8(count)) }
    bytes.append(kind | 15)
    write(Int128(count))
  }
}
