import Model
import Platform
import SecretMemory

/// Text with references. It is written by filters, and can't be read back.
struct TemplateCodec: ViewCodec {
  let dialect: EnvDialect

  static let filters: [String: ValueCoding] = [
    "json": .jsonString, "env": .envFilter, "ini": .iniFilter, "url": .urlFilter, "base64": .base64Filter,
    "line": .lineFilter,
  ]

  func entries(of text: Span<UInt8>) throws(ViewError) -> [ViewDocument.Entry] {
    throw ViewError(
      .EROFS, "a view of a template can't be written; edit the template, or the items themselves")
  }

  func lay(out names: [[String]], into layout: inout FreshLayout) throws(ViewError) {
    throw ViewError(.EROFS, "a template is made from a text, not from a list")
  }

  func write(
    _ value: Span<UInt8>, _ style: SlotStyle, to writer: inout SecretWriter
  ) throws(ViewError) -> String? {
    switch style.coding {
    case .jsonString:
      return try JSONCodec().write(value, style, to: &writer)
    case .envFilter:
      return try EnvCodec(dialect: dialect).write(value, SlotStyle(coding: .bare), to: &writer)
    case .iniFilter: return try IniCodec().write(value, style, to: &writer)
    case .urlFilter: try writeURL(value, to: &writer)
    case .base64Filter:
      try Base64Encoding.write(value) { (character) throws(ViewError) in try writer.append(character) }
    case .lineFilter: return try writeLine(value, to: &writer)
    default: try writer.append(value)
    }
    return nil
  }

  /// Percent-encodes all but the unreserved characters of RFC 3986.
  private func writeURL(_ value: Span<UInt8>, to writer: inout SecretWriter) throws(ViewError) {
    for index in value.indices {
      let byte = value[index]
      if byte.isASCIILetter || byte.isDigit || "-._~".utf8.contains(byte) {
        try writer.append(byte)
      } else {
        try writer.append(UInt8(ascii: "%"))
        try writer.append(Hexadecimal.digit(byte >> 4, isUpperCase: true))
        try writer.append(Hexadecimal.digit(byte & 0xF, isUpperCase: true))
      }
    }
  }

  private func writeLine(_ value: Span<UInt8>, to writer: inout SecretWriter) throws(ViewError) -> String? {
    let end = value.count > 0 && value[value.count &- 1] == 0x0A ? value.count &- 1 : value.count
    for index in 0..<end where value[index] == 0x0A || value[index] == 0x0D || value[index] == 0 {
      return "the value has more than one line"
    }
    try writer.append(value.extracting(0..<end))
    return nil
  }
}

/// Finds the references of a template.
struct TemplateScanner: ~Escapable {
  private var scanner: TextScanner
  private(set) var slots: [ViewSlot] = []
  private var counts: [String: Int] = [:]

  @_lifetime(copy text)
  init(_ text: Span<UInt8>) {
    scanner = TextScanner(text)
  }

  /// - Returns: the text between the references.
  mutating func scan() throws(ViewError) -> SecretBytes {
    var literal = try SecretWriter(capacity: scanner.text.count)
    let brace = UInt8(ascii: "{")
    while let byte = scanner.peek() {
      if byte == UInt8(ascii: "\\"), scanner.peek(1) == brace, scanner.peek(2) == brace {
        try literal.append("{{")
        scanner.position &+= 3
      } else if byte == brace, scanner.peek(1) == brace {
        try readReference(at: literal.count)
      } else {
        try literal.append(byte)
        scanner.position &+= 1
      }
    }
    return literal.finish()
  }

  private mutating func readReference(at offset: Int) throws(ViewError) {
    let text = scanner.text
    let start = scanner.position &+ 2
    var end = start
    while end < text.count, text[end] != 0x0A,
      text[end] != UInt8(ascii: "}") || end &+ 1 == text.count || text[end &+ 1] != UInt8(ascii: "}")
    {
      end &+= 1
    }
    guard end < text.count, text[end] != 0x0A else {
      throw scanner.fault(
        "`{{` is not closed by `}}` in its line; write `\\{{` for the characters themselves")
    }
    let (path, coding) = try reference(try scanner.name(start..<end))
    try References.check(path, entry: [path], line: scanner.line())
    let count = counts[path, default: 0] &+ 1
    counts[path] = count
    slots.append(
      ViewSlot(
        name: count > 1 ? [path, "\(count)"] : [path], reference: path, offset: offset,
        style: SlotStyle(coding: coding)))
    guard slots.count <= ViewLimits.entries else { throw ViewLimits.tooManyEntries }
    scanner.position = end &+ 2
  }

  private mutating func reference(_ inside: String) throws(ViewError) -> (String, ValueCoding) {
    let parts = inside.split(separator: "|", omittingEmptySubsequences: false).map { $0.trimmed }
    guard parts.count <= 2, !parts[0].isEmpty else {
      throw scanner.fault("a reference is not of the form `{{ PATH }}` or `{{ PATH | FILTER }}`")
    }
    guard parts.count == 2 else { return (parts[0], .bare) }
    guard let coding = TemplateCodec.filters[parts[1]] else {
      throw scanner.fault("a filter is not \(TemplateCodec.filters.keys.sorted().joined(separator: ", "))")
    }
    return (parts[0], coding)
  }
}

extension Substring {
  fileprivate var trimmed: String {
    var rest = self
    while rest.first == " " || rest.first == "\t" { rest = rest.dropFirst() }
    while rest.last == " " || rest.last == "\t" { rest = rest.dropLast() }
    return String(rest)
  }
}
