import Platform
import SecretMemory

/// Environment files.
struct EnvCodec: ViewCodec {
  let dialect: EnvDialect

  /// The dialects that `portable` has to satisfy.
  private static let all: [EnvDialect] = [.sh, .compose, .node, .python, .systemd]

  func entries(of text: Span<UInt8>) throws(ViewError) -> [ViewDocument.Entry] {
    guard dialect == .portable else { return try EnvFile.entries(of: text, dialect) }
    var scanner = TextScanner(text)
    try scanner.requireUTF8()
    let entries = try EnvFile.entries(of: text, .sh)
    for other in Self.all.dropFirst() {
      let others: [ViewDocument.Entry]
      do throws(ViewError) { others = try EnvFile.entries(of: text, other) } catch {
        throw ViewError(
          error.errno, line: error.line, entry: error.entry, "\(other) can't read it: \(error.reason)")
      }
      try compare(entries, others, other, text)
    }
    return entries
  }

  private func compare(
    _ entries: [ViewDocument.Entry], _ others: [ViewDocument.Entry], _ other: EnvDialect, _ text: Span<UInt8>
  ) throws(ViewError) {
    for (entry, its) in zip(entries, others) {
      guard entry.name == its.name, try hasSameValue(entry, its, text) else {
        throw ViewError(
          .EINVAL, line: entry.line, entry: entry.name,
          "\(other) reads it differently than a shell; quote it otherwise, or choose a dialect")
      }
    }
    guard entries.count == others.count else {
      throw ViewError(.EINVAL, "\(other) reads other variables in it than a shell; choose a dialect")
    }
  }

  private func hasSameValue(
    _ entry: ViewDocument.Entry, _ other: ViewDocument.Entry, _ text: Span<UInt8>
  ) throws(ViewError) -> Bool {
    var left = try SecretWriter(capacity: entry.range.count)
    var right = try SecretWriter(capacity: other.range.count)
    try Spelling.decode(text, from: entry.range.lowerBound, entry.steps, to: &left)
    try Spelling.decode(text, from: other.range.lowerBound, other.steps, to: &right)
    let value = right.finish()
    return left.hasSameBytes(as: value, 0..<value.count)
  }

  // MARK: Writing

  func write(
    _ value: Span<UInt8>, _ style: SlotStyle, to writer: inout SecretWriter
  ) throws(ViewError) -> String? {
    if dialect != .sh, !UTF8Text.isValid(value) { return "the value is not UTF-8, which \(dialect) requires" }
    let start = writer.count
    if !style.spelling.isEmpty {
      if try Spelling.write(value, style.spelling, to: &writer), try isReadBack(value, writer, start) {
        return nil
      }
      writer.truncate(to: start)
    }
    for coding in codings(style.coding) {
      if try spell(value, coding, to: &writer), try isReadBack(value, writer, start) { return nil }
      writer.truncate(to: start)
    }
    return dialect == .portable
      ? "not all dialects can read the value; choose one with the attribute `user.keyhole.dialect`"
      : "the value has characters that \(dialect) can't read back"
  }

  /// The wanted one, then the others that the dialect has.
  private func codings(_ wanted: ValueCoding) -> [ValueCoding] {
    let known: [ValueCoding] =
      switch dialect {
      case .docker: [.bare]
      case .portable: [.bare, .singleQuoted]
      case .node: [.bare, .singleQuoted, .doubleQuoted, .backquoted]
      default: [.bare, .singleQuoted, .doubleQuoted]
      }
    guard known.contains(wanted) else { return known }
    return [wanted] + known.filter { $0 != wanted }
  }

  private func isReadBack(
    _ value: Span<UInt8>, _ writer: borrowing SecretWriter, _ start: Int
  ) throws(ViewError) -> Bool {
    try writer.withWritten(from: start) { (text) throws(ViewError) in
      for dialect in dialect == .portable ? Self.all : [dialect] {
        guard let reading = try? EnvValue.read(text, from: 0, dialect), reading.range == 0..<text.count else {
          return false
        }
        var decoded = try SecretWriter(capacity: value.count)
        try Spelling.decode(text, from: 0, reading.steps, to: &decoded)
        guard decoded.hasSameBytes(as: value) else { return false }
      }
      return true
    }
  }

  /// Between these quotes, with the escapes of the dialect; whether that is read back shows only then.
  private func spell(
    _ value: Span<UInt8>, _ coding: ValueCoding, to writer: inout SecretWriter
  ) throws(ViewError) -> Bool {
    switch coding {
    case .singleQuoted: try writeSingle(value, to: &writer)
    case .doubleQuoted: try writeDouble(value, to: &writer)
    case .backquoted:
      try writer.append(UInt8(ascii: "`"))
      try writer.append(value)
      try writer.append(UInt8(ascii: "`"))
    default:
      // Before a comment, an empty value would be the comment for these.
      if value.isEmpty, dialect == .compose || dialect == .python { return false }
      guard mayBeBare(value) else { return false }
      try writer.append(value)
    }
    return true
  }

  /// Whether all bytes are plain for a shell wherever they stand. Other dialects have other rules, which reading back tells.
  private func mayBeBare(_ value: Span<UInt8>) -> Bool {
    if dialect == .docker { return value.count < EnvValue.longestLine }
    for index in value.indices {
      let byte = value[index]
      guard byte.isASCIILetter || byte.isDigit || Self.harmless.contains(byte) else { return false }
    }
    return true
  }

  private static let harmless = Array("_./:@%+,=-".utf8)

  private func writeSingle(_ value: Span<UInt8>, to writer: inout SecretWriter) throws(ViewError) {
    let quote = UInt8(ascii: "'")
    try writer.append(quote)
    for index in value.indices {
      switch (value[index], dialect) {
      case (quote, .sh): try writer.append("'\\''")
      case (quote, .compose), (quote, .python), (UInt8(ascii: "\\"), .python):
        try writer.append([UInt8(ascii: "\\"), value[index]])
      default: try writer.append(value[index])
      }
    }
    try writer.append(quote)
  }

  private func writeDouble(_ value: Span<UInt8>, to writer: inout SecretWriter) throws(ViewError) {
    try writer.append(UInt8(ascii: "\""))
    for index in value.indices {
      let byte = value[index]
      if byte == 0x0D, dialect != .sh, dialect != .systemd {
        try writer.append("\\r")
      } else {
        if needsEscape(byte) { try writer.append(UInt8(ascii: "\\")) }
        try writer.append(byte)
      }
    }
    try writer.append(UInt8(ascii: "\""))
  }

  private func needsEscape(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "\""), UInt8(ascii: "\\"): dialect != .node
    case UInt8(ascii: "$"): dialect != .node && dialect != .python
    case UInt8(ascii: "`"): dialect == .sh || dialect == .systemd
    default: false
    }
  }

  func lay(out names: [[String]], into layout: inout FreshLayout) throws(ViewError) {
    for (index, name) in names.enumerated() {
      guard name.count == 1, EnvFile.isName(Array(name[0].utf8).span, dialect) else {
        throw ViewError(.EINVAL, entry: name, "it is no name of a variable: letters, digits and `_`")
      }
      try layout.write(name[0] + "=")
      layout.place(index, SlotStyle(coding: .bare))
      try layout.write("\n")
    }
  }
}

extension SecretWriter {
  borrowing func hasSameBytes(as other: Span<UInt8>) -> Bool {
    guard count == other.count else { return false }
    return (try? withWritten(from: 0) { (bytes) throws(ViewError) in bytes.isEqual(to: other) }) ?? false
  }
}
