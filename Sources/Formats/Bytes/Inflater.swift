import SecretMemory

/// Unpacks gzip (RFC 1952) and what is deflated (RFC 1951) into memory for secrets.
struct Inflater: ~Copyable {
  private let input: SecretBytes
  private var position: Int
  private var bits: UInt32 = 0
  private var bitCount: UInt32 = 0

  static func gunzip(
    _ packed: consuming SecretBytes, into decoded: inout DecodedSecret
  ) throws(FormatError) {
    let start = try contentStart(packed)
    var inflater = Inflater(packed, at: start)
    try inflater.inflate(into: &decoded)
    // CRC-32 and size follow; the size is enough to see that nothing is missing.
    let end = inflater.position
    guard inflater.byte(end + 7) != nil else { throw Self.damage }
    let size = (0..<4).reduce(UInt32(0)) { $0 | UInt32(inflater.byte(end + 4 + $1) ?? 0) << (8 * UInt32($1)) }
    guard UInt32(truncatingIfNeeded: decoded.count) == size else { throw Self.damage }
  }

  private init(_ input: consuming SecretBytes, at position: Int) {
    self.input = input
    self.position = position
  }

  private static var damage: FormatError { FormatError("a compressed attachment is damaged") }

  private static func contentStart(_ packed: borrowing SecretBytes) throws(FormatError) -> Int {
    let bytes = packed.span
    guard bytes.count > 18, bytes[0] == 0x1F, bytes[1] == 0x8B, bytes[2] == 8 else { throw damage }
    let flags = bytes[3]
    var start = 10
    if flags & 4 != 0 { start += 2 + Int(bytes[10]) + Int(bytes[11]) << 8 }
    for flag: UInt8 in [8, 16] where flags & flag != 0 {
      while start < bytes.count, bytes[start] != 0 { start += 1 }
      start += 1
    }
    return flags & 2 != 0 ? start + 2 : start
  }

  private func byte(_ index: Int) -> UInt8? {
    guard index >= 0, index < input.count else { return nil }
    return input[index]
  }

  private mutating func take(_ count: UInt32) throws(FormatError) -> Int {
    while bitCount < count {
      guard let next = byte(position) else { throw Self.damage }
      bits |= UInt32(next) << bitCount
      bitCount += 8
      position += 1
    }
    defer {
      bits >>= count
      bitCount -= count
    }
    return Int(bits & ((1 << count) - 1))
  }

  private mutating func inflate(into decoded: inout DecodedSecret) throws(FormatError) {
    var isLast = false
    while !isLast {
      isLast = try take(1) == 1
      switch try take(2) {
      case 0: try copyStored(into: &decoded)
      case 1: try inflate(Self.fixedLiterals, Self.fixedDistances, into: &decoded)
      case 2:
        let (literals, distances) = try readCodes()
        try inflate(literals, distances, into: &decoded)
      default: throw Self.damage
      }
    }
  }

  private mutating func copyStored(into decoded: inout DecodedSecret) throws(FormatError) {
    bits = 0
    bitCount = 0
    let count = try take(16)
    guard try take(16) == count ^ 0xFFFF else { throw Self.damage }
    for _ in 0..<count {
      guard let next = byte(position) else { throw Self.damage }
      try decoded.append(next)
      position += 1
    }
  }

  // MARK: Codes

  /// A Huffman code: how many codes have each length, and the symbols in their order.
  private struct Code: Sendable {
    var counts = [Int](repeating: 0, count: 16)
    var symbols: [Int] = []

    init(_ lengths: some Collection<Int>) {
      for length in lengths { counts[length] += 1 }
      counts[0] = 0
      for length in 1..<16 {
        for (symbol, other) in lengths.enumerated() where other == length { symbols.append(symbol) }
      }
    }
  }

  private static let fixedLiterals = Code(
    (0..<288).map { $0 < 144 ? 8 : $0 < 256 ? 9 : $0 < 280 ? 7 : 8 })
  private static let fixedDistances = Code([Int](repeating: 5, count: 30))
  private static let lengthBases = [
    3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17, 19, 23, 27, 31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195,
    227, 258,
  ]
  private static let lengthBits: [UInt32] = [
    0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0,
  ]
  private static let distanceBases = [
    1, 2, 3, 4, 5, 7, 9, 13, 17, 25, 33, 49, 65, 97, 129, 193, 257, 385, 513, 769, 1025, 1537, 2049, 3073,
    4097, 6145, 8193, 12289, 16385, 24577,
  ]

  private mutating func symbol(_ code: Code) throws(FormatError) -> Int {
    var value = 0
    var first = 0
    var index = 0
    for length in 1..<16 {
      value |= try take(1)
      let count = code.counts[length]
      if value - first < count, index + value - first < code.symbols.count, value >= first {
        return code.symbols[index + value - first]
      }
      index += count
      first = (first + count) << 1
      value <<= 1
    }
    throw Self.damage
  }

  private mutating func readCodes() throws(FormatError) -> (Code, Code) {
    let literals = try take(5) + 257
    let distances = try take(5) + 1
    var orders = [Int](repeating: 0, count: 19)
    let order = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15]
    for place in 0..<(try take(4) + 4) { orders[order[place]] = try take(3) }
    let code = Code(orders)
    var lengths: [Int] = []
    while lengths.count < literals + distances {
      switch try symbol(code) {
      case 16:
        guard let last = lengths.last else { throw Self.damage }
        lengths += [Int](repeating: last, count: try take(2) + 3)
      case 17: lengths += [Int](repeating: 0, count: try take(3) + 3)
      case 18: lengths += [Int](repeating: 0, count: try take(7) + 11)
      case let length: lengths.append(length)
      }
    }
    guard lengths.count == literals + distances else { throw Self.damage }
    return (Code(lengths[..<literals]), Code(lengths[literals...]))
  }

  private mutating func inflate(
    _ literals: Code, _ distances: Code, into decoded: inout DecodedSecret
  ) throws(FormatError) {
    while true {
      let symbol = try symbol(literals)
      if symbol == 256 { return }
      guard symbol > 256 else {
        try decoded.append(UInt8(truncatingIfNeeded: symbol))
        continue
      }
      guard symbol - 257 < Self.lengthBases.count else { throw Self.damage }
      let length = Self.lengthBases[symbol - 257] + (try take(Self.lengthBits[symbol - 257]))
      let place = try self.symbol(distances)
      guard place < Self.distanceBases.count else { throw Self.damage }
      let distance = Self.distanceBases[place] + (try take(UInt32(max(0, place / 2 - 1))))
      for _ in 0..<length {
        guard let byte = decoded.last(distance) else { throw Self.damage }
        try decoded.append(byte)
      }
    }
  }
}
