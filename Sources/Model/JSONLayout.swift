/// Lays out values as `jq -S --indent 2` (1.6) does, ended by a line feed.
struct JSONLayout {
  private var text: [UInt8] = []

  /// The value as JSON, or nil where JSON can't say it: dates, data, uids, `inf` and `nan` inside.
  static func text(of value: SettingValue) -> [UInt8]? {
    var layout = JSONLayout()
    guard layout.append(value, indentation: 0) else { return nil }
    return layout.text + [ASCII.lineFeed]
  }

  private mutating func append(_ value: SettingValue, indentation: Int) -> Bool {
    switch value {
    case .string(let string): append(string)
    case .integer(let number): append(number.description)
    case .real(let number): number.isFinite && append(number.description)
    case .bool(let flag): append(flag ? "true" : "false")
    case .array(let elements): append(elements, indentation: indentation)
    case .dictionary(let members): append(members, indentation: indentation)
    case .date, .data, .uid: false
    }
  }

  private mutating func append(_ plain: String) -> Bool {
    text.append(contentsOf: plain.utf8)
    return true
  }
}

extension JSONLayout {
  private mutating func append(_ elements: [SettingValue], indentation: Int) -> Bool {
    if elements.isEmpty { return append("[]") }
    text.append(ASCII.openBracket)
    for (index, element) in elements.enumerated() {
      beginLine(isFirst: index == 0, indentation: indentation + 2)
      guard append(element, indentation: indentation + 2) else { return false }
    }
    return endLines(indentation: indentation, with: "]")
  }

  private mutating func append(_ members: [ExactString: SettingValue], indentation: Int) -> Bool {
    if members.isEmpty { return append("{}") }
    text.append(ASCII.openBrace)
    for (index, member) in members.sorted(by: { $0.key < $1.key }).enumerated() {
      beginLine(isFirst: index == 0, indentation: indentation + 2)
      guard append(member.key), append(": ") else { return false }
      guard append(member.value, indentation: indentation + 2) else { return false }
    }
    return endLines(indentation: indentation, with: "}")
  }

  private mutating func beginLine(isFirst: Bool, indentation: Int) {
    if !isFirst { text.append(ASCII.comma) }
    text.append(ASCII.lineFeed)
    text.append(contentsOf: repeatElement(0x20, count: indentation))
  }

  private mutating func endLines(indentation: Int, with closing: String) -> Bool {
    text.append(ASCII.lineFeed)
    text.append(contentsOf: repeatElement(0x20, count: indentation))
    return append(closing)
  }

  private mutating func append(_ string: ExactString) -> Bool {
    text.append(ASCII.quote)
    for byte in string.utf8 { append(escaping: byte) }
    text.append(ASCII.quote)
    return true
  }

  /// jq escapes the control characters of ASCII, U+007F among them, the quote and the backslash; no slash.
  private mutating func append(escaping byte: UInt8) {
    switch byte {
    case ASCII.quote, ASCII.backslash: text.append(contentsOf: [ASCII.backslash, byte])
    case 0x08: text.append(contentsOf: "\\b".utf8)
    case 0x09: text.append(contentsOf: "\\t".utf8)
    case 0x0A: text.append(contentsOf: "\\n".utf8)
    case 0x0C: text.append(contentsOf: "\\f".utf8)
    case 0x0D: text.append(contentsOf: "\\r".utf8)
    case 0x00...0x0F: text.append(contentsOf: "\\u000\(String(byte, radix: 16))".utf8)
    case 0x10...0x1F, 0x7F: text.append(contentsOf: "\\u00\(String(byte, radix: 16))".utf8)
    default: text.append(byte)
    }
  }
}
