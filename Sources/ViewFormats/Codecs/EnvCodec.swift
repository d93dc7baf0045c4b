import Platform
import SecretMemory

/// Environment files.
struct EnvCodec: ViewCodec {
  let dialect: EnvDialect

  func entries(of text: Span<UInt8>) throws(ViewError) -> [ViewDocument.Entry] {
    var entries: [ViewDocument.Entry] = []
    var line = 0
    var start = 0
    while start < text.count {
      line += 1
      let end = text.firstOffset(of: 0x0A, from: start) ?? text.count
      defer { start = end + 1 }
      guard end > start, text[start] != UInt8(ascii: "#") else { continue }
      guard let equals = text.firstOffset(of: UInt8(ascii: "="), from: start), equals < end,
        let name = text.extracting(start..<equals).wellFormedText
      else { throw ViewError(.EINVAL, line: line, "it is not of the form NAME=value") }
      let value = equals + 1..<end
      entries.append(
        ViewDocument.Entry(
          name: [name], line: line, range: value, coding: .bare, steps: [.verbatim(value.count)]))
    }
    return entries
  }

  func write(
    _ value: Span<UInt8>, _ style: SlotStyle, to writer: inout SecretWriter
  ) throws(ViewError) -> String? {
    for index in value.indices where value[index] <= 0x20 { return "it can't stand bare" }
    try writer.append(value)
    return nil
  }

  func lay(out names: [[String]], into layout: inout FreshLayout) throws(ViewError) {
    for (index, name) in names.enumerated() {
      try layout.write(name[0] + "=")
      layout.place(index, SlotStyle(coding: .bare))
      try layout.write("\n")
    }
  }
}
