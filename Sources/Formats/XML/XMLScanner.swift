import SecretMemory

/// Walks over XML as far as exports use it: elements, character data, the five entities. No document type is
/// obeyed, so no entity of a file's own is ever replaced.
struct XMLScanner {
  /// As many elements inside each other are read: what walks over groups is recursive.
  static let deepest = 1100

  let source: ByteSource
  private(set) var position = 0
  /// The elements that are open, from the outside in.
  private var names: [String] = []
  /// An element that `<closes itself/>` is opened, and closed by the next event.
  private var isClosingItself = false
  /// The attributes of the element that was opened last, as they stand there.
  private(set) var attributes = 0..<0

  enum Event: Equatable {
    case open(String)
    case close(String)
    case text(Range<Int>)
    case end
  }

  init(_ source: ByteSource) {
    self.source = source
    if source.starts("\u{FEFF}") { position = 3 }
  }

  mutating func next() throws(FormatError) -> Event {
    if isClosingItself {
      isClosingItself = false
      return .close(names.removeLast())
    }
    while position < source.count {
      guard source[position] == UInt8(ascii: "<") else { return .text(characters()) }
      if source.starts("<![CDATA[", at: position) { throw error("CDATA is not read") }
      if source.starts("<!--", at: position) {
        try skip(past: "-->", from: 4)
      } else if source.starts("<?", at: position) {
        try skip(past: "?>", from: 2)
      } else if source.starts("<!", at: position) {
        try skip(past: ">", from: 2)
      } else {
        return try tag()
      }
    }
    guard names.isEmpty else { throw error("it is cut off") }
    return .end
  }

  /// The next element's name; nil where its parent is closed. Blanks between are skipped.
  mutating func child() throws(FormatError) -> String? {
    while true {
      switch try next() {
      case .open(let name): return name
      case .close: return nil
      case .end: throw error("it is cut off")
      case .text: continue
      }
    }
  }

  /// The character data of the element that was just opened, up to its end.
  mutating func content() throws(FormatError) -> SecretSlice {
    var range = position..<position
    while true {
      switch try next() {
      case .text(let text) where range.isEmpty: range = text
      case .text: throw error("a comment stands inside a value")
      case .close: return SecretSlice(source, range, .xml)
      case .open, .end: throw error("text was expected")
      }
    }
  }

  /// Skips the rest of the element that was just opened; what stands between its tags.
  @discardableResult
  mutating func skipElement() throws(FormatError) -> Range<Int> {
    let start = position
    var depth = 1
    var last = position
    while depth > 0 {
      last = position
      switch try next() {
      case .open: depth += 1
      case .close: depth -= 1
      case .text: continue
      case .end: throw error("it is cut off")
      }
    }
    return start..<max(start, last)
  }

  private mutating func characters() -> Range<Int> {
    let start = position
    while position < source.count, source[position] != UInt8(ascii: "<") { position += 1 }
    return start..<position
  }

  private mutating func skip(past ending: String, from offset: Int) throws(FormatError) {
    position += offset
    while position < source.count, !source.starts(ending, at: position) { position += 1 }
    guard position < source.count else { throw error("it is cut off") }
    position += ending.utf8.count
  }

  private mutating func tag() throws(FormatError) -> Event {
    let isClosing = source.starts("</", at: position)
    position += isClosing ? 2 : 1
    let start = position
    try skipToEndOfTag()
    let end = position
    position += 1
    let isEmpty = !isClosing && end > start && source[end - 1] == UInt8(ascii: "/")
    let inside = start..<(isEmpty ? end - 1 : end)
    let nameEnd = inside.first { source[$0] <= 0x20 } ?? inside.upperBound
    guard nameEnd > start, let name = source.text(start..<nameEnd) else {
      throw error("an element has no name")
    }
    guard !isClosing else { return try close(name) }
    guard names.count < Self.deepest else { throw error("elements are nested too deeply") }
    names.append(name)
    attributes = nameEnd..<inside.upperBound
    isClosingItself = isEmpty
    return .open(name)
  }

  /// A `>` between quotes is part of an attribute.
  private mutating func skipToEndOfTag() throws(FormatError) {
    var quote: UInt8?
    while position < source.count, quote != nil || source[position] != UInt8(ascii: ">") {
      let byte = source[position]
      if byte == quote { quote = nil } else if quote == nil, byte == 0x22 || byte == 0x27 { quote = byte }
      position += 1
    }
    guard position < source.count else { throw error("it is cut off") }
  }

  private mutating func close(_ name: String) throws(FormatError) -> Event {
    guard names.last == name else { throw error("`\(name)` is closed and not open") }
    return .close(names.removeLast())
  }

  func error(_ reason: String) -> FormatError { FormatError("\(reason) at byte \(position)") }
}

/// Character data of XML.
enum XMLCharacters {
  private static let entities: [(name: [UInt8], byte: UInt8)] = [
    (Array("&amp;".utf8), 0x26), (Array("&lt;".utf8), 0x3C), (Array("&gt;".utf8), 0x3E),
    (Array("&quot;".utf8), 0x22), (Array("&apos;".utf8), 0x27),
  ]

  static func decode(
    _ source: ByteSource, _ range: Range<Int>, into decoded: inout DecodedSecret
  ) throws(FormatError) {
    var index = range.lowerBound
    while index < range.upperBound {
      guard source[index] == UInt8(ascii: "&") else {
        try decoded.append(source[index])
        index += 1
        continue
      }
      if let (name, byte) = entities.first(where: { source.starts($0.name, at: index) }) {
        try decoded.append(byte)
        index += name.count
      } else {
        index = try decodeReference(source, index, into: &decoded)
      }
    }
  }

  /// U+0000 is no character of XML, whatever names it.
  private static func decodeReference(
    _ source: ByteSource, _ index: Int, into decoded: inout DecodedSecret
  ) throws(FormatError) -> Int {
    let isHexadecimal = source.starts("&#x", at: index)
    let start = index + (isHexadecimal ? 3 : 2)
    var end = start
    while end < start + 8, end < source.count, source[end] != UInt8(ascii: ";") { end += 1 }
    guard source.starts("&#", at: index), end < source.count, source[end] == UInt8(ascii: ";"),
      let number = Digits.number(source.bytes(start..<end), radix: isHexadecimal ? 16 : 10), number > 0,
      let scalar = UInt32(exactly: number).flatMap(Unicode.Scalar.init)
    else { throw FormatError("an unknown entity at byte \(index)") }
    try decoded.append(scalar)
    return end + 1
  }

  static func escaped(_ text: String) -> String {
    text.unicodeScalars.reduce(into: "") { escaped, scalar in
      switch scalar {
      case "&": escaped += "&amp;"
      case "<": escaped += "&lt;"
      case ">": escaped += "&gt;"
      case "\r",
        "\0"..<" " where scalar != "\n" && scalar != "\t":
        escaped += "&#\(scalar.value);"
      default: escaped.unicodeScalars.append(scalar)
      }
    }
  }
}
