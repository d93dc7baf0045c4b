/// Walks over a JSON text. It checks as much as it walks over.
package struct JSONScanner {
  /// As many arrays and objects inside each other are read: each level takes its part of the stack.
  package static let deepest = 600

  package let source: ByteSource
  package private(set) var position = 0
  private var depth = 0

  package init(_ source: ByteSource) {
    self.source = source
    if source.starts("\u{FEFF}") { position = 3 }
  }

  /// Calls `body` with each member's name; it has to take the value.
  ///
  /// - Throws: `FormatError` also where two members have one name: one of them would be lost.
  package mutating func members(
    _ body: (String, inout JSONScanner) throws(FormatError) -> Void
  ) throws(FormatError) {
    var names: Set<String> = []
    try items(from: UInt8(ascii: "{"), to: UInt8(ascii: "}")) { (scanner) throws(FormatError) in
      let name = try scanner.string().text()
      guard names.insert(name).inserted else { throw scanner.error("the member `\(name)` is there twice") }
      try scanner.take(UInt8(ascii: ":"))
      try body(name, &scanner)
    }
  }

  package mutating func elements(
    _ body: (inout JSONScanner) throws(FormatError) -> Void
  ) throws(FormatError) {
    try items(from: UInt8(ascii: "["), to: UInt8(ascii: "]"), body)
  }

  private mutating func items(
    from opening: UInt8, to closing: UInt8, _ body: (inout JSONScanner) throws(FormatError) -> Void
  ) throws(FormatError) {
    guard depth < Self.deepest else { throw error("arrays and objects are nested too deeply") }
    depth += 1
    defer { depth -= 1 }
    try take(opening)
    if try next() == closing { return try take(closing) }
    while true {
      try body(&self)
      if try next() == closing { return try take(closing) }
      try take(UInt8(ascii: ","))
    }
  }

  /// A string that need not be decoded.
  package mutating func string() throws(FormatError) -> SecretSlice {
    try take(UInt8(ascii: "\""))
    let start = position
    while try current() != UInt8(ascii: "\"") {
      guard try current() >= 0x20 else { throw error("a control character in a string") }
      position += try current() == UInt8(ascii: "\\") ? 2 : 1
    }
    position += 1
    return SecretSlice(source, start..<(position - 1), .json)
  }

  /// A string, or nil for anything else, which is skipped: `null`, a number, an object.
  package mutating func optionalString() throws(FormatError) -> SecretSlice? {
    guard try next() == UInt8(ascii: "\"") else {
      _ = try value()
      return nil
    }
    return try string()
  }

  /// Any value, as it stands there.
  package mutating func value() throws(FormatError) -> Range<Int> {
    let first = try next()
    let start = position
    switch first {
    case UInt8(ascii: "\""): _ = try string()
    case UInt8(ascii: "{"): try members { (_, scanner) throws(FormatError) in _ = try scanner.value() }
    case UInt8(ascii: "["): try elements { (scanner) throws(FormatError) in _ = try scanner.value() }
    default:
      while position < source.count, !Self.ends.contains(source[position]) { position += 1 }
      guard position > start else { throw error("a value is missing") }
    }
    return start..<position
  }

  private static let ends = Array(",]} \t\r\n".utf8)

  package mutating func next() throws(FormatError) -> UInt8 {
    while [0x20, 0x09, 0x0A, 0x0D].contains(try current()) { position += 1 }
    return try current()
  }

  package mutating func end() throws(FormatError) {
    while position < source.count {
      guard [0x20, 0x09, 0x0A, 0x0D].contains(source[position]) else {
        throw error("something follows the end")
      }
      position += 1
    }
  }

  private mutating func take(_ byte: UInt8) throws(FormatError) {
    guard try next() == byte else { throw error("`\(Character(Unicode.Scalar(byte)))` was expected") }
    position += 1
  }

  private func current() throws(FormatError) -> UInt8 {
    guard position < source.count else { throw error("it is cut off") }
    return source[position]
  }

  package func error(_ reason: String) -> FormatError { FormatError("\(reason) at byte \(position)") }
}
