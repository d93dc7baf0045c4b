import Platform
import SecretMemory

/// `~/.pgpass`: `HOST:PORT:DATABASE:USER:PASSWORD`, with `\:` and `\\`, as libpq's `passwordFromFile` reads it.
struct PgpassCodec: ViewCodec {
  private static let colon = UInt8(ascii: ":")
  private static let backslash = UInt8(ascii: "\\")

  func entries(of text: Span<UInt8>) throws(ViewError) -> [ViewDocument.Entry] {
    var scanner = TextScanner(text)
    var entries: [ViewDocument.Entry] = []
    while !scanner.isAtEnd {
      let start = scanner.position
      scanner.skipLine()
      var end = scanner.position
      if end > start, text[end &- 1] == 0x0D { end &-= 1 }
      if start < end, text[start] != UInt8(ascii: "#") { entries.append(try entry(start..<end, &scanner)) }
      scanner.position &+= 1
    }
    return entries
  }

  private func entry(_ line: Range<Int>, _ scanner: inout TextScanner) throws(ViewError) -> ViewDocument.Entry
  {
    let text = scanner.text
    var name: [String] = []
    var start = line.lowerBound
    var field: [UInt8] = []
    var index = start
    while index < line.upperBound, name.count < 4 {
      if text[index] == Self.colon {
        guard let part = field.span.wellFormedText else {
          throw ViewError(.EILSEQ, line: scanner.line(), "a name is not UTF-8")
        }
        name.append(part)
        field = []
        start = index &+ 1
      } else {
        if text[index] == Self.backslash, index &+ 1 < line.upperBound { index &+= 1 }
        field.append(text[index])
      }
      index &+= 1
    }
    guard name.count == 4 else {
      throw scanner.fault("it is not of the form HOST:PORT:DATABASE:USER:PASSWORD")
    }
    guard let steps = Self.read(text.extracting(start..<line.upperBound)) else {
      throw scanner.fault("the password has a colon without a backslash before it, or a NUL", entry: name)
    }
    return ViewDocument.Entry(
      name: name, line: scanner.line(), range: start..<line.upperBound, coding: .bare, steps: steps)
  }

  /// nil: it ends before the end of the text.
  private static func read(_ text: Span<UInt8>) -> [SpellingStep]? {
    var steps = SpellingBuilder()
    var index = 0
    while index < text.count {
      guard text[index] != colon, text[index] != 0 else { return nil }
      if text[index] == backslash, index &+ 1 < text.count {
        guard text[index &+ 1] != 0 else { return nil }
        steps.syntax(backslash)
        index &+= 1
      }
      steps.verbatim()
      index &+= 1
    }
    return steps.steps
  }

  func write(
    _ value: Span<UInt8>, _ style: SlotStyle, to writer: inout SecretWriter
  ) throws(ViewError) -> String? {
    for index in value.indices where value[index] == 0x0A || value[index] == 0 {
      return "the value has a line feed or NUL, for which the format has no escape"
    }
    if value.count > 0, value[value.count &- 1] == 0x0D { return "the value ends in CR, which libpq drops" }
    let start = writer.count
    if !style.spelling.isEmpty {
      if try Spelling.write(value, style.spelling, to: &writer), try isReadBack(value, writer, start) {
        return nil
      }
      writer.truncate(to: start)
    }
    for index in value.indices {
      if value[index] == Self.colon || value[index] == Self.backslash { try writer.append(Self.backslash) }
      try writer.append(value[index])
    }
    return nil
  }

  private func isReadBack(
    _ value: Span<UInt8>, _ writer: borrowing SecretWriter, _ start: Int
  ) throws(ViewError) -> Bool {
    try writer.withWritten(from: start) { (text) throws(ViewError) in
      guard let steps = Self.read(text) else { return false }
      var decoded = try SecretWriter(capacity: value.count)
      try Spelling.decode(text, from: 0, steps, to: &decoded)
      return decoded.hasSameBytes(as: value)
    }
  }

  func lay(out names: [[String]], into layout: inout FreshLayout) throws(ViewError) {
    for (index, name) in names.enumerated() {
      guard name.count == 4, !name.joined().utf8.contains(where: { $0 == 0x0A || $0 == 0x0D || $0 == 0 })
      else {
        throw ViewError(.EINVAL, entry: name, "it is not the four fields HOST, PORT, DATABASE and USER")
      }
      for (number, field) in name.enumerated() {
        for (place, byte) in field.utf8.enumerated() {
          let isComment = number == 0 && place == 0 && byte == UInt8(ascii: "#")
          if byte == Self.colon || byte == Self.backslash || isComment {
            try layout.text.append(Self.backslash)
          }
          try layout.text.append(byte)
        }
        try layout.write(":")
      }
      layout.place(index, SlotStyle(coding: .bare))
      try layout.write("\n")
    }
  }
}
