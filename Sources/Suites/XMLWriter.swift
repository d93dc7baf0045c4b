import Model

/// Writes XML property lists byte for byte as Apple's writers lay them out: tabs, keys in order, base 64 in
/// lines as wide as their depth leaves.
struct XMLWriter {
  private(set) var bytes: [UInt8] = []
  /// Something was written that XML 1.0 does not allow, so that strict readers refuse the document.
  private(set) var isUnwritable = false

  mutating func document(_ value: SettingValue) {
    append("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n")
    append("<!DOCTYPE plist PUBLIC \"-//Apple//DTD PLIST 1.0//EN\" ")
    append("\"http://www.apple.com/DTDs/PropertyList-1.0.dtd\">\n<plist version=\"1.0\">\n")
    element(value, depth: 0)
    append("</plist>\n")
  }

  private mutating func element(_ value: SettingValue, depth: Int) {
    indent(depth)
    switch value {
    case .string(let string): text(string, in: "string")
    case .integer(let number): append("<integer>\(number)</integer>\n")
    case .real(let number): append("<real>\(XMLScalar.text(number))</real>\n")
    case .bool(let isTrue): append(isTrue ? "<true/>\n" : "<false/>\n")
    case .date(let seconds): append("<date>\(CivilDate(seconds: seconds).text)</date>\n")
    case .data(let data): self.data(data, depth: depth)
    case .uid(let number): uid(number, depth: depth)
    case .array(let items): array(items, depth: depth)
    case .dictionary(let entries): dictionary(entries, depth: depth)
    }
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
    for (key, value) in entries.sorted(by: { $0.key < $1.key }) {
      indent(depth + 1)
      text(key, in: "key")
      element(value, depth: depth + 1)
    }
    indent(depth)
    append("</dict>\n")
  }

  private mutating func uid(_ number: UInt64, depth: Int) {
    append("<dict>\n")
    indent(depth + 1)
    append("<key>CF$UID</key>\n")
    indent(depth + 1)
    append("<integer>\(number)</integer>\n")
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
      Base64.encode(data[start..<min(start + width, data.count)], into: &bytes)
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

  private mutating func text(_ text: ExactString, in element: String) {
    append("<\(element)>")
    if text.utf8.contains(where: Self.needsCare) {
      escape(text)
    } else {
      bytes += text.utf8
    }
    append("</\(element)>\n")
  }

  /// Also the first byte of U+FFFE and U+FFFF, which no XML may hold.
  private static func needsCare(_ byte: UInt8) -> Bool {
    byte == 0x26 || byte == 0x3C || byte == 0x3E || byte == 0xEF
      || byte < 0x20 && byte != 0x0A && byte != 0x09
  }

  private mutating func escape(_ text: ExactString) {
    for scalar in text.string.unicodeScalars {
      switch scalar {
      case "&": append("&amp;")
      case "<": append("&lt;")
      case ">": append("&gt;")
      // Readers of XML turn a bare one into a line feed.
      case "\r": append("&#13;")
      case "\t", "\n": bytes.append(UInt8(scalar.value))
      case "\0"..."\u{1F}", "\u{FFFE}", "\u{FFFF}":
        isUnwritable = true
        append("&#\(scalar.value);")
      default: bytes += UTF8.encode(scalar).map { Array($0) } ?? []
      }
    }
  }
}
