import SecretMemory

/// JSON (RFC 8259) between bytes and bytes, so that a secret in it is never a string of Swift's.
enum JSONText {
  /// What stands between the quotes.
  static func write(_ bytes: some Sequence<UInt8>, to sink: Sink) throws(TransferError) {
    for byte in bytes {
      switch byte {
      case UInt8(ascii: "\""), UInt8(ascii: "\\"):
        try sink.write(UInt8(ascii: "\\"))
        try sink.write(byte)
      case 0x0A: try sink.write("\\n")
      case 0x09: try sink.write("\\t")
      case 0..<0x20, 0x7F: try sink.write("\\u00" + (byte < 16 ? "0" : "") + String(byte, radix: 16))
      default: try sink.write(byte)
      }
    }
  }

  static func write(_ text: String, to sink: Sink) throws(TransferError) {
    try write(text.utf8, to: sink)
  }

  static func decode(
    _ source: Source, _ range: Range<Int>, into decoded: inout Decoded
  ) throws(TransferError) {
    var index = range.lowerBound
    while index < range.upperBound {
      guard source[index] == UInt8(ascii: "\\") else {
        try decoded.append(source[index])
        index += 1
        continue
      }
      index = try decodeEscape(source, index + 1, into: &decoded)
    }
  }

  /// Returns where what follows the escape begins.
  private static func decodeEscape(
    _ source: Source, _ index: Int, into decoded: inout Decoded
  ) throws(TransferError) -> Int {
    switch source[index] {
    case UInt8(ascii: "b"): try decoded.append(0x08 as UInt8)
    case UInt8(ascii: "f"): try decoded.append(0x0C as UInt8)
    case UInt8(ascii: "n"): try decoded.append(0x0A as UInt8)
    case UInt8(ascii: "r"): try decoded.append(0x0D as UInt8)
    case UInt8(ascii: "t"): try decoded.append(0x09 as UInt8)
    case UInt8(ascii: "u"): return try decodeUnit(source, index + 1, into: &decoded)
    default: try decoded.append(source[index])
    }
    return index + 1
  }

  private static func decodeUnit(
    _ source: Source, _ index: Int, into decoded: inout Decoded
  ) throws(TransferError) -> Int {
    let first = try unit(source, index)
    if let scalar = Unicode.Scalar(first) {
      try decoded.append(scalar)
      return index + 4
    }
    guard first < 0xDC00, source.starts("\\u", at: index + 4) else { throw TransferError("half a character") }
    let second = try unit(source, index + 6)
    guard second & 0xFC00 == 0xDC00,
      let scalar = Unicode.Scalar(0x10000 + (first & 0x3FF) << 10 + (second & 0x3FF))
    else { throw TransferError("half a character") }
    try decoded.append(scalar)
    return index + 10
  }

  private static func unit(_ source: Source, _ index: Int) throws(TransferError) -> UInt32 {
    guard index + 4 <= source.count, let digits = source.text(index..<(index + 4)),
      let value = UInt32(digits, radix: 16)
    else { throw TransferError("an escape is not four hexadecimal digits") }
    return value
  }
}

/// Walks over a JSON text. It checks as much as it walks over.
struct JSONScanner {
  let source: Source
  private(set) var position = 0

  init(_ source: Source) {
    self.source = source
  }

  /// Calls `body` with each member's name; it has to take the value.
  mutating func members(
    _ body: (String, inout JSONScanner) throws(TransferError) -> Void
  ) throws(TransferError) {
    try items(from: UInt8(ascii: "{"), to: UInt8(ascii: "}")) { (scanner) throws(TransferError) in
      let name = try scanner.string().text()
      try scanner.take(UInt8(ascii: ":"))
      try body(name, &scanner)
    }
  }

  mutating func elements(
    _ body: (inout JSONScanner) throws(TransferError) -> Void
  ) throws(TransferError) {
    try items(from: UInt8(ascii: "["), to: UInt8(ascii: "]"), body)
  }

  private mutating func items(
    from opening: UInt8, to closing: UInt8, _ body: (inout JSONScanner) throws(TransferError) -> Void
  ) throws(TransferError) {
    try take(opening)
    if try next() == closing { return try take(closing) }
    while true {
      try body(&self)
      if try next() == closing { return try take(closing) }
      try take(UInt8(ascii: ","))
    }
  }

  /// A string that need not be decoded.
  mutating func string() throws(TransferError) -> Passage {
    try take(UInt8(ascii: "\""))
    let start = position
    while try current() != UInt8(ascii: "\"") {
      guard try current() >= 0x20 else { throw error("a control character in a string") }
      position += try current() == UInt8(ascii: "\\") ? 2 : 1
    }
    position += 1
    return Passage(source, start..<(position - 1), .json)
  }

  /// Any value, as it stands there.
  mutating func value() throws(TransferError) -> Range<Int> {
    let first = try next()
    let start = position
    switch first {
    case UInt8(ascii: "\""): _ = try string()
    case UInt8(ascii: "{"): try members { (_, scanner) throws(TransferError) in _ = try scanner.value() }
    case UInt8(ascii: "["): try elements { (scanner) throws(TransferError) in _ = try scanner.value() }
    default:
      while position < source.count, !Self.ends.contains(source[position]) { position += 1 }
      guard position > start else { throw error("a value is missing") }
    }
    return start..<position
  }

  private static let ends = Array(",]} \t\r\n".utf8)

  mutating func next() throws(TransferError) -> UInt8 {
    while [0x20, 0x09, 0x0A, 0x0D].contains(try current()) { position += 1 }
    return try current()
  }

  mutating func end() throws(TransferError) {
    while position < source.count {
      guard [0x20, 0x09, 0x0A, 0x0D].contains(source[position]) else {
        throw error("something follows the end")
      }
      position += 1
    }
  }

  private mutating func take(_ byte: UInt8) throws(TransferError) {
    guard try next() == byte else { throw error("`\(Character(Unicode.Scalar(byte)))` was expected") }
    position += 1
  }

  private func current() throws(TransferError) -> UInt8 {
    guard position < source.count else { throw error("it is cut off") }
    return source[position]
  }

  func error(_ reason: String) -> TransferError { TransferError("\(reason) at byte \(position)") }
}
