import Model

/// Writes XML property lists byte for byte as Apple's writers lay them out: tabs, keys in order, base 64 in
/// lines as wide as their depth leaves.
struct XMLWriter {
  private(set) var bytes: [UInt8] = []
  /// Something was written that strict readers of XML 1.0 refuse, or that Foundation loses.
  private(set) var isUnwritable = false

  static let head = Array(
    """
    <?xml version="1.0" encoding="UTF-8"?>
    <!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
    <plist version="1.0">

    """.utf8)
  static let tail = Array("</plist>\n".utf8)

  mutating func document(_ value: SettingValue) {
    bytes += Self.head
    element(value, depth: 0)
    bytes += Self.tail
  }

  /// One entry of a dictionary, in lines of its own.
  mutating func entry(_ key: ExactString, _ value: SettingValue, depth: Int) {
    indent(depth)
    append("<key>")
    text(key)
    append("</key>\n")
    element(value, depth: depth)
  }

  /// The bytes that were written since the last call.
  mutating func takeBytes() -> [UInt8] {
    defer { bytes = [] }
    return bytes
  }

  private mutating func element(_ value: SettingValue, depth: Int) {
    indent(depth)
    switch value {
    case .string(let string): line("<string>", "</string>\n") { $0.text(string) }
    case .integer(let number): line("<integer>", "</integer>\n") { $0.integer(number) }
    case .real(let number): line("<real>", "</real>\n") { $0.append(XMLScalar.text(number)) }
    case .bool(let isTrue): append(isTrue ? "<true/>\n" : "<false/>\n")
    case .date(let date): self.date(date)
    case .data(let data): self.data(data, depth: depth)
    case .uid(let number): uid(number, depth: depth)
    case .array(let items): array(items, depth: depth)
    case .dictionary(let entries): dictionary(entries, depth: depth)
    }
  }

  /// A date in XML has whole seconds, and Foundation takes a list for damaged where one has not. So a fraction stands in
  /// a comment behind it, which every other program skips.
  private mutating func date(_ date: SettingDate) {
    let text = CivilDate(seconds: date.seconds).text
    append("<date>\(text)</date>")
    if let fraction = date.fraction { append("<!-- \(text.dropLast()).\(fraction)Z -->") }
    append("\n")
  }

  private mutating func array(_ items: [SettingValue], depth: Int) {
    guard !items.isEmpty else { return append("<array/>\n") }
    append("<array>\n")
    for item in items { element(item, depth: depth + 1) }
    indent(depth)
    append("</array>\n")
  }

  private mutating func dictionary(_ entries: [ExactString: SettingValue], depth: Int) {
    guard !entries.isEmpty else { return append("<dict/>\n") }
    append("<dict>\n")
    for (key, value) in PropertyLists.sorted(entries.map { ($0.key, $0.value) }) {
      entry(key, value, depth: depth + 1)
    }
    indent(depth)
    append("</dict>\n")
  }

  private mutating func uid(_ number: UInt64, depth: Int) {
    append("<dict>\n")
    indent(depth + 1)
    append("<key>CF$UID</key>\n")
    indent(depth + 1)
    line("<integer>", "</integer>\n") { $0.integer(Int128(number)) }
    indent(depth)
    append("</dict>\n")
  }

  /// Data without bytes is written in two lines, too: Foundation refuses a whole file for one `<data/>`.
  private mutating func data(_ data: [UInt8], depth: Int) {
    let indentation = min(depth, 8)
    let width = (76 - indentation * 8) / 4 * 3
    append("<data>\n")
    for start in stride(from: 0, to: data.count, by: width) {
      indent(indentation)
      Base64.encode(data.span.extracting(start..<min(start + width, data.count)), into: &bytes)
      bytes.append(0x0A)
    }
    indent(depth)
    append("</data>\n")
  }
}

extension XMLWriter {
  private mutating func append(_ text: String) {
    bytes += text.utf8
  }

  private mutating func indent(_ depth: Int) {
    for _ in 0..<depth { bytes.append(0x09) }
  }

  private mutating func line(_ open: String, _ close: String, _ content: (inout Self) -> Void) {
    append(open)
    content(&self)
    append(close)
  }

  /// Most fit into 64 bits, whose description is several times faster.
  private mutating func integer(_ number: Int128) {
    append(Int64(exactly: number).map(String.init) ?? String(number))
  }

  private mutating func text(_ text: ExactString) {
    let utf8 = text.utf8.span
    for index in utf8.indices where Self.needsCare(utf8[index]) { return escape(text) }
    bytes += text.utf8
  }

  /// Also the first byte of U+FEFF, U+FFFE and U+FFFF.
  private static func needsCare(_ byte: UInt8) -> Bool {
    byte < 0x20 ? byte != 0x0A && byte != 0x09 : byte == 0x26 || byte == 0x3C || byte == 0x3E || byte == 0xEF
  }

  private mutating func escape(_ text: ExactString) {
    let utf8 = text.utf8.span
    // Foundation takes it for a byte order mark of the string and drops it.
    if text.utf8.starts(with: [0xEF, 0xBB, 0xBF]) { isUnwritable = true }
    for index in utf8.indices {
      switch utf8[index] {
      case 0x26: append("&amp;")
      case 0x3C: append("&lt;")
      case 0x3E: append("&gt;")
      // Readers of XML turn a bare one into a line feed.
      case 0x0D: append("&#13;")
      case 0x09, 0x0A: bytes.append(utf8[index])
      case 0..<0x20:
        isUnwritable = true
        append("&#\(utf8[index]);")
      // U+FFFE and U+FFFF. Foundation reads them as they are.
      case 0xEF where utf8[index + 1] == 0xBF && utf8[index + 2] >= 0xBE:
        isUnwritable = true
        bytes.append(utf8[index])
      default: bytes.append(utf8[index])
      }
    }
  }
}
