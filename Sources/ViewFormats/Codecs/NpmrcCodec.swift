import Platform
import SecretMemory

/// `~/.npmrc`, as npm's package `ini` reads it, and npm then fills in `${NAME}`.
struct NpmrcCodec: ViewCodec {
  func entries(of text: Span<UInt8>) throws(ViewError) -> [ViewDocument.Entry] {
    var scanner = TextScanner(text)
    try scanner.requireUTF8()
    var entries: [ViewDocument.Entry] = []
    var section: [String] = []
    var counts: [[String]: Int] = [:]
    while !scanner.isAtEnd {
      let line = try Self.line(&scanner)
      defer { scanner.position &+= 1 }
      guard !line.isEmpty, !"#;".utf8.contains(text[line.lowerBound]) else { continue }
      if text[line.lowerBound] == UInt8(ascii: "["), text[line.upperBound &- 1] == UInt8(ascii: "]") {
        section = [try key(line.lowerBound &+ 1..<line.upperBound &- 1, &scanner)]
        continue
      }
      guard let equals = text.firstOffset(of: UInt8(ascii: "="), from: line.lowerBound),
        equals < line.upperBound
      else { continue }
      var name = section + [try key(line.lowerBound..<equals, &scanner)]
      let count = counts[name, default: 0] &+ 1
      counts[name] = count
      if name.last?.hasSuffix("[]") == true, count > 1 { name.append("\(count)") }
      entries.append(try entry(name, equals &+ 1..<line.upperBound, &scanner))
    }
    return entries
  }

  /// The next line without blanks at its ends. The position is then at its line feed.
  private static func line(_ scanner: inout TextScanner) throws(ViewError) -> Range<Int> {
    var start = scanner.position
    scanner.skipLine()
    var end = scanner.position
    if end > start, scanner.text[end &- 1] == 0x0D { end &-= 1 }
    while start < end, scanner.text[start].isBlank { start &+= 1 }
    while end > start, scanner.text[end &- 1].isBlank { end &-= 1 }
    for index in start..<end where scanner.text[index].isControl {
      throw scanner.fault("it has a control character, or a CR that does not end a line")
    }
    return start..<end
  }

  private func key(_ range: Range<Int>, _ scanner: inout TextScanner) throws(ViewError) -> String {
    var end = range.upperBound
    while end > range.lowerBound, scanner.text[end &- 1].isBlank { end &-= 1 }
    let name = try scanner.name(range.lowerBound..<end)
    guard Self.isKey(name) else {
      throw scanner.fault("a key is empty, or has a quote, a backslash, `;` or `#`")
    }
    return name
  }

  static func isKey(_ name: String) -> Bool {
    !name.isEmpty && !name.utf8.contains { $0.isControl || "\"'\\;#=".utf8.contains($0) }
      && !UTF8Text.hasBlankEnds(Array(name.utf8).span) && name != "__proto__"
  }

  private func entry(
    _ name: [String], _ range: Range<Int>, _ scanner: inout TextScanner
  ) throws(ViewError) -> ViewDocument.Entry {
    do throws(EnvFault) {
      let reading = try NpmrcValue.read(scanner.text, range)
      return ViewDocument.Entry(
        name: name, line: scanner.line(), range: reading.range, coding: reading.coding, steps: reading.steps)
    } catch { throw scanner.fault(error.reason, entry: name) }
  }

  func write(
    _ value: Span<UInt8>, _ style: SlotStyle, to writer: inout SecretWriter
  ) throws(ViewError) -> String? {
    guard UTF8Text.isValid(value) else { return "the value is not UTF-8, which npm requires" }
    let start = writer.count
    if !style.spelling.isEmpty {
      if try Spelling.write(value, style.spelling, to: &writer), try isReadBack(value, writer, start) {
        return nil
      }
      writer.truncate(to: start)
    }
    let codings: [ValueCoding] = [.bare, .singleQuoted, .doubleQuoted]
    for coding in [style.coding] + codings.filter({ $0 != style.coding }) {
      try NpmrcValue.write(value, coding, to: &writer)
      if try isReadBack(value, writer, start) { return nil }
      writer.truncate(to: start)
    }
    return "the value has a backslash before `${…}`, or a NUL, which npm can't read back"
  }

  private func isReadBack(
    _ value: Span<UInt8>, _ writer: borrowing SecretWriter, _ start: Int
  ) throws(ViewError) -> Bool {
    try writer.withWritten(from: start) { (text) throws(ViewError) in
      for index in text.indices where text[index] == 0x0A || text[index] == 0x0D { return false }
      guard let reading = try? NpmrcValue.read(text, 0..<text.count), reading.range == 0..<text.count else {
        return false
      }
      var decoded = try SecretWriter(capacity: value.count)
      try Spelling.decode(text, from: 0, reading.steps, to: &decoded)
      return decoded.hasSameBytes(as: value)
    }
  }

  func lay(out names: [[String]], into layout: inout FreshLayout) throws(ViewError) {
    var sections: [String] = []
    var members: [String: [Int]] = [:]
    for (index, name) in names.enumerated() {
      let section = name.count == 2 ? name[0] : ""
      guard (1...2).contains(name.count), name.allSatisfy(Self.isKey), !section.contains("]") else {
        throw ViewError(.EINVAL, entry: name, "it is no key, or section and key")
      }
      if members[section] == nil { sections.append(section) }
      members[section, default: []].append(index)
    }
    for section in sections.filter(\.isEmpty) + sections.filter({ !$0.isEmpty }) {
      if !section.isEmpty { try layout.write("[\(section)]\n") }
      for index in members[section] ?? [] {
        try layout.write((names[index].last ?? "") + "=")
        layout.place(index, SlotStyle(coding: .bare))
        try layout.write("\n")
      }
    }
  }
}

/// A value behind `=`: bare with `\\`, `\;` and `\#`, in single quotes, or a JSON string. In all of them a backslash keeps npm
/// from filling in `${NAME}`.
enum NpmrcValue {
  private static let backslash = UInt8(ascii: "\\")
  private static let missing = EnvFault(
    "npm fills in `${…}` from the environment, which a view can't keep; write the value itself")

  static func read(_ text: Span<UInt8>, _ range: Range<Int>) throws(EnvFault) -> EnvReading {
    var (start, end) = (range.lowerBound, range.upperBound)
    while start < end, text[start].isBlank { start &+= 1 }
    while end > start, text[end &- 1].isBlank { end &-= 1 }
    guard start < end else {
      return EnvReading(range: range.lowerBound..<range.lowerBound, coding: .bare, steps: [])
    }
    if UTF8Text.hasBlankEnds(text.extracting(start..<end)) {
      throw EnvFault("an odd blank begins or ends it")
    }
    // A line ends for JavaScript at U+2028 and U+2029 too, where the expression of `ini` stops.
    for index in start..<end {
      if text[index].isControl { throw .control }
      if text[index] == 0xE2, let (scalar, _) = UTF8Text.scalar(text, index),
        [0x2028, 0x2029].contains(scalar.value)
      {
        throw EnvFault("it has a character that ends a line for npm")
      }
    }
    let (first, last) = (text[start], text[end &- 1])
    if end &- start == 1, first == UInt8(ascii: "'") || first == UInt8(ascii: "\"") { throw .open }
    if first == UInt8(ascii: "\""), last == first { return try readDouble(text, start, end) }
    if first == UInt8(ascii: "'"), last == first { return try readSingle(text, start, end) }
    return try readBare(text, start, end)
  }

  private static func readDouble(_ text: Span<UInt8>, _ start: Int, _ end: Int) throws(EnvFault) -> EnvReading
  {
    let (closing, steps) = try JSONString.read(text, from: start)
    guard closing == end else { throw EnvFault("something follows the closing quote") }
    return EnvReading(
      range: start..<end, coding: .doubleQuoted, steps: try withoutEscapes(steps, text, start))
  }

  /// Takes `\\` before `${NAME}` as npm's escape.
  private static func withoutEscapes(
    _ steps: [SpellingStep], _ text: Span<UInt8>, _ start: Int
  ) throws(EnvFault) -> [SpellingStep] {
    var result = SpellingBuilder()
    var index = start
    for step in steps {
      switch step {
      case .syntax(let bytes):
        result.syntax(bytes)
        index &+= bytes.count
      case .verbatim(let count):
        let end = index &+ count
        while index < end {
          // A backslash of the value comes first in its step, behind the one of JSON.
          if text[index] == backslash, beginsVariable(text, index &+ 1) {
            if index > start &+ 2, text[index &- 2] == backslash { throw missing }
            result.syntax(backslash)
          } else {
            if beginsVariable(text, index), text[index &- 1] != backslash { throw missing }
            result.verbatim()
          }
          index &+= 1
        }
      case .letter:
        result.add(step)
        index &+= 2
      case .unit, .pair:
        // A dollar sign or a brace that is written as an escape.
        if !step.isPair, [0x24, 0x5C, 0x7B, 0x7D].contains(Spelling.unit(text, index)) { throw missing }
        result.add(step)
        index &+= step.isPair ? 12 : 6
      }
    }
    return result.steps
  }

  private static func readSingle(_ text: Span<UInt8>, _ start: Int, _ end: Int) throws(EnvFault) -> EnvReading
  {
    var steps = SpellingBuilder()
    steps.syntax(UInt8(ascii: "'"))
    // Text that parses as JSON becomes that: a number, a word, a string.
    let first = start &+ 1 < end &- 1 ? text[start &+ 1] : 0
    if first.isDigit || "-\"{[tfn".utf8.contains(first) || first == 0x20 || first == 0x09 {
      throw EnvFault("npm may read what stands in single quotes as JSON; use double quotes")
    }
    try readPlain(text, start &+ 1, end &- 1, &steps)
    steps.syntax(UInt8(ascii: "'"))
    return EnvReading(range: start..<end, coding: .singleQuoted, steps: steps.steps)
  }

  private static func readPlain(
    _ text: Span<UInt8>, _ start: Int, _ end: Int, _ steps: inout SpellingBuilder
  ) throws(EnvFault) {
    for index in start..<max(start, end) {
      if text[index] == backslash, beginsVariable(text, index &+ 1) {
        if index > start, text[index &- 1] == backslash { throw missing }
        steps.syntax(backslash)
      } else {
        if beginsVariable(text, index), index == start || text[index &- 1] != backslash { throw missing }
        steps.verbatim()
      }
    }
  }

  private static func readBare(_ text: Span<UInt8>, _ start: Int, _ limit: Int) throws(EnvFault) -> EnvReading
  {
    var steps = SpellingBuilder()
    var index = start
    var (end, blanks) = (start, 0)
    while index < limit, text[index] != UInt8(ascii: ";"), text[index] != UInt8(ascii: "#") {
      let next = index &+ 1 < limit ? text[index &+ 1] : 0
      if text[index].isBlank {
        blanks &+= 1
        index &+= 1
        continue
      }
      steps.verbatim(blanks)
      blanks = 0
      if text[index] == backslash, next == backslash || next == UInt8(ascii: ";") || next == UInt8(ascii: "#")
      {
        // `\\` before a variable would be a backslash that keeps npm from filling it in.
        if next == backslash, beginsVariable(text, index &+ 2) { throw missing }
        steps.syntax(backslash)
        steps.verbatim()
        index &+= 2
      } else if text[index] == backslash, beginsVariable(text, index &+ 1) {
        if index > start, text[index &- 1] == backslash { throw missing }
        steps.syntax(backslash)
        steps.verbatim()
        index &+= 2
      } else {
        if beginsVariable(text, index) { throw missing }
        steps.verbatim()
        index &+= 1
      }
      end = index
    }
    guard index == limit else {
      throw EnvFault("a comment stands behind it, where quotes would not count; give it a line of its own")
    }
    return EnvReading(range: start..<end, coding: .bare, steps: steps.steps)
  }

  /// `${NAME}` with at least one character that is none of `$`, `{` and `}`.
  private static func beginsVariable(_ text: Span<UInt8>, _ start: Int) -> Bool {
    guard start >= 0, start &+ 3 < text.count, text[start] == UInt8(ascii: "$"),
      text[start &+ 1] == UInt8(ascii: "{")
    else { return false }
    for index in (start &+ 2)..<text.count {
      switch text[index] {
      case UInt8(ascii: "}"): return index > start &+ 2
      case UInt8(ascii: "$"), UInt8(ascii: "{"), 0x0A: return false
      default: continue
      }
    }
    return false
  }

  static func write(_ value: Span<UInt8>, _ coding: ValueCoding, to writer: inout SecretWriter)
    throws(ViewError)
  {
    var escaped = try SecretWriter(capacity: value.count &+ 16)
    for index in value.indices {
      if beginsVariable(value, index) { try escaped.append(backslash) }
      if coding == .bare, isSpecial(value, index) { try escaped.append(backslash) }
      try escaped.append(value[index])
    }
    let text = escaped.finish()
    switch coding {
    case .doubleQuoted: try JSONString.write(text.span, to: &writer)
    case .singleQuoted:
      try writer.append(UInt8(ascii: "'"))
      try writer.append(text.span)
      try writer.append(UInt8(ascii: "'"))
    default: try writer.append(text.span)
    }
  }

  private static func isSpecial(_ value: Span<UInt8>, _ index: Int) -> Bool {
    switch value[index] {
    case UInt8(ascii: ";"), UInt8(ascii: "#"), backslash: true
    default: false
    }
  }
}

extension SpellingStep {
  var isPair: Bool { if case .pair = self { true } else { false } }
}
