import SecretMemory

/// Walks over XML as far as exports use it: elements, character data, the five entities. No document type is
/// obeyed, so no entity of a file's own is ever replaced.
struct XMLScanner {
  let source: Source
  private(set) var position = 0
  /// Where the part ends that is walked over.
  private let end: Int

  enum Event: Equatable {
    case open(String)
    case close(String)
    case text(Range<Int>)
    case end
  }

  init(_ source: Source, _ range: Range<Int>? = nil) {
    self.source = source
    position = range?.lowerBound ?? 0
    end = range?.upperBound ?? source.count
  }

  /// An element that `<closes itself/>` is opened, and closed by the next event.
  private var pending: String?
  /// The attributes of the element that was opened last, as they stand there.
  private(set) var attributes = 0..<0

  mutating func next() throws(TransferError) -> Event {
    if let name = pending {
      pending = nil
      return .close(name)
    }
    guard position < end else { return .end }
    guard source[position] == UInt8(ascii: "<") else { return .text(characters()) }
    if source.starts("<![CDATA[", at: position) { throw error("CDATA is not read") }
    if source.starts("<!--", at: position) { return try skip(past: "-->") }
    if source.starts("<?", at: position) { return try skip(past: "?>") }
    if source.starts("<!", at: position) { return try skip(past: ">") }
    return try tag()
  }

  /// The next element's name; nil where its parent is closed. Blanks between are skipped.
  mutating func child() throws(TransferError) -> String? {
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
  mutating func content() throws(TransferError) -> Passage {
    var range = position..<position
    while true {
      switch try next() {
      case .text(let text): range = range.isEmpty ? text : range.lowerBound..<text.upperBound
      case .close: return Passage(source, range, .xml)
      case .open, .end: throw error("text was expected")
      }
    }
  }

  /// Skips the rest of the element that was just opened; what stands between its tags.
  @discardableResult
  mutating func skipElement() throws(TransferError) -> Range<Int> {
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
    while position < end, source[position] != UInt8(ascii: "<") { position += 1 }
    return start..<position
  }

  private mutating func skip(past ending: String) throws(TransferError) -> Event {
    while position < end, !source.starts(ending, at: position) { position += 1 }
    guard position < end else { throw error("it is cut off") }
    position += ending.utf8.count
    return try next()
  }

  private mutating func tag() throws(TransferError) -> Event {
    let isClosing = source.starts("</", at: position)
    position += isClosing ? 2 : 1
    let start = position
    var quote: UInt8?
    while position < end, quote != nil || source[position] != UInt8(ascii: ">") {
      let byte = source[position]
      if byte == quote { quote = nil } else if quote == nil, byte == 0x22 || byte == 0x27 { quote = byte }
      position += 1
    }
    guard position < end else { throw error("it is cut off") }
    let isEmpty = source[position - 1] == UInt8(ascii: "/")
    let inside = start..<(isEmpty ? position - 1 : position)
    position += 1
    let nameEnd = inside.first { source[$0] <= 0x20 } ?? inside.upperBound
    attributes = nameEnd..<inside.upperBound
    guard let name = source.text(start..<nameEnd), !name.isEmpty else {
      throw error("an element has no name")
    }
    if isClosing { return .close(name) }
    if isEmpty { pending = name }
    return .open(name)
  }

  func error(_ reason: String) -> TransferError { TransferError("\(reason) at byte \(position)") }
}

/// Character data of XML.
enum XMLCharacters {
  private static let entities: [(String, UInt8)] = [
    ("&amp;", 0x26), ("&lt;", 0x3C), ("&gt;", 0x3E), ("&quot;", 0x22), ("&apos;", 0x27),
  ]

  static func decode(
    _ source: Source, _ range: Range<Int>, into decoded: inout Decoded
  ) throws(TransferError) {
    var index = range.lowerBound
    while index < range.upperBound {
      guard source[index] == UInt8(ascii: "&") else {
        try decoded.append(source[index])
        index += 1
        continue
      }
      if let (name, byte) = entities.first(where: { source.starts($0.0, at: index) }) {
        try decoded.append(byte)
        index += name.utf8.count
      } else {
        index = try decodeReference(source, index, into: &decoded)
      }
    }
  }

  private static func decodeReference(
    _ source: Source, _ index: Int, into decoded: inout Decoded
  ) throws(TransferError) -> Int {
    let isHexadecimal = source.starts("&#x", at: index)
    let start = index + (isHexadecimal ? 3 : 2)
    let end = (start..<min(start + 8, source.count)).first { source[$0] == UInt8(ascii: ";") }
    guard source.starts("&#", at: index), let end, let text = source.text(start..<end),
      let number = UInt32(text, radix: isHexadecimal ? 16 : 10), let scalar = Unicode.Scalar(number)
    else { throw TransferError("an entity is unknown at byte \(index)") }
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
