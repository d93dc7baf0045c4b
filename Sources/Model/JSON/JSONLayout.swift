/// Lays out values as `jq -S --indent 2` (1.6) does, ended by a line feed.
struct JSONLayout<Output: JSONOutput> {
  private var text: Output

  /// Adds the value as JSON; nil where JSON can't say it: dates, data, uids, `inf` and `nan` inside.
  static func append(_ value: SettingValue, to output: Output) -> Output? {
    var layout = JSONLayout(text: output)
    guard layout.append(value, indentation: 0), layout.append("\n") else { return nil }
    return layout.text
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
    text.write(plain.utf8)
    return true
  }
}

extension JSONLayout {
  private mutating func append(_ elements: [SettingValue], indentation: Int) -> Bool {
    if elements.isEmpty { return append("[]") }
    text.write(ASCII.openBracket)
    for (index, element) in elements.enumerated() {
      beginLine(isFirst: index == 0, indentation: indentation + 2)
      guard append(element, indentation: indentation + 2) else { return false }
    }
    return endLines(indentation: indentation, with: "]")
  }

  private mutating func append(_ members: [ExactString: SettingValue], indentation: Int) -> Bool {
    if members.isEmpty { return append("{}") }
    text.write(ASCII.openBrace)
    for (index, member) in members.sorted(by: { $0.key < $1.key }).enumerated() {
      beginLine(isFirst: index == 0, indentation: indentation + 2)
      guard append(member.key), append(": ") else { return false }
      guard append(member.value, indentation: indentation + 2) else { return false }
    }
    return endLines(indentation: indentation, with: "}")
  }

  private mutating func beginLine(isFirst: Bool, indentation: Int) {
    if !isFirst { text.write(ASCII.comma) }
    text.write(ASCII.lineFeed)
    text.write(blanks: indentation)
  }

  private mutating func endLines(indentation: Int, with closing: String) -> Bool {
    text.write(ASCII.lineFeed)
    text.write(blanks: indentation)
    return append(closing)
  }

  private mutating func append(_ string: ExactString) -> Bool {
    text.write(ASCII.quote)
    for byte in string.utf8 { append(escaping: byte) }
    text.write(ASCII.quote)
    return true
  }

  /// jq escapes the control characters of ASCII, U+007F among them, the quote and the backslash; no slash.
  private mutating func append(escaping byte: UInt8) {
    switch byte {
    case ASCII.quote: text.write("\\\"".utf8)
    case ASCII.backslash: text.write("\\\\".utf8)
    case 0x08: text.write("\\b".utf8)
    case 0x09: text.write("\\t".utf8)
    case 0x0A: text.write("\\n".utf8)
    case 0x0C: text.write("\\f".utf8)
    case 0x0D: text.write("\\r".utf8)
    case 0x00...0x0F: text.write("\\u000\(String(byte, radix: 16))".utf8)
    case 0x10...0x1F, 0x7F: text.write("\\u00\(String(byte, radix: 16))".utf8)
    default: text.write(byte)
    }
  }
}
