import Platform
import SecretMemory

/// The files of the AWS tools, as botocore reads them: Python's `RawConfigParser`, with settings nested one level deep.
///
/// Refused is what other AWS tools read differently: a `#` or `;` behind a blank in a value, values of several lines.
struct IniCodec: ViewCodec {
  func entries(of text: Span<UInt8>) throws(ViewError) -> [ViewDocument.Entry] {
    var reader = IniReader(text)
    return try reader.read()
  }

  func write(
    _ value: Span<UInt8>, _ style: SlotStyle, to writer: inout SecretWriter
  ) throws(ViewError) -> String? {
    if let fault = Self.fault(in: value) { return fault }
    try writer.append(value)
    return nil
  }

  /// Why a value can't stand in one line without quotes; nil: it can.
  static func fault(in value: Span<UInt8>) -> String? {
    guard UTF8Text.isValid(value) else { return "the value is not UTF-8, which the format requires" }
    guard !UTF8Text.hasBlankEnds(value) else {
      return "the value begins or ends with a blank, which the format drops"
    }
    for index in value.indices {
      let byte = value[index]
      if byte.isControl {
        return "the value has a line feed or a control character, for which the format has no escape"
      }
      if byte == UInt8(ascii: "#") || byte == UInt8(ascii: ";"), index == 0 || value[index &- 1].isBlank {
        return "the value has a `#` or `;` behind a blank, which begins a comment for some programs"
      }
      // Python's splitlines() ends a line at U+0085, U+2028 and U+2029.
      if byte >= 0xC2, let (scalar, _) = UTF8Text.scalar(value, index),
        [0x85, 0x2028, 0x2029].contains(scalar.value)
      {
        return "the value has a character that ends a line"
      }
    }
    return nil
  }

  func lay(out names: [[String]], into layout: inout FreshLayout) throws(ViewError) {
    var sections: [String] = []
    var members: [String: [Int]] = [:]
    for (index, name) in names.enumerated() {
      guard name.count == 2, Self.isSection(name[0]), Self.isKey(name[1]) else {
        throw ViewError(
          .EINVAL, entry: name, "it is no section and key, such as `default` and `aws_access_key_id`")
      }
      if members[name[0]] == nil { sections.append(name[0]) }
      members[name[0], default: []].append(index)
    }
    for (number, section) in sections.enumerated() {
      try layout.write((number > 0 ? "\n" : "") + "[\(section)]\n")
      for index in members[section] ?? [] {
        try layout.write(names[index][1] + " = ")
        layout.place(index, SlotStyle(coding: .bare))
        try layout.write("\n")
      }
    }
  }

  static func isSection(_ name: String) -> Bool {
    !name.isEmpty && !name.utf8.contains { $0.isControl || $0 == UInt8(ascii: "]") }
      && !UTF8Text.hasBlankEnds(Array(name.utf8).span)
  }

  static func isKey(_ name: String) -> Bool {
    guard let first = name.utf8.first, !"#;[".utf8.contains(first) else { return false }
    return name.utf8.allSatisfy { !$0.isControl && !"=:\t".utf8.contains($0) } && name == name.lowercased()
      && !UTF8Text.hasBlankEnds(Array(name.utf8).span)
  }
}

/// The lines, with the indentation by which Python finds what belongs to the line before.
private struct IniReader: ~Escapable {
  private var scanner: TextScanner
  private var entries: [ViewDocument.Entry] = []
  private var section: String?
  /// The last key, and whether its own value is empty, so that nested settings may follow.
  private var key: (name: String, isEmpty: Bool)?
  private var indentation = 0

  @_lifetime(copy text)
  init(_ text: Span<UInt8>) {
    scanner = TextScanner(text)
  }

  mutating func read() throws(ViewError) -> [ViewDocument.Entry] {
    try scanner.requireUTF8()
    while !scanner.isAtEnd {
      let start = scanner.position
      scanner.skipLine()
      var end = scanner.position
      if end > start, scanner.text[end &- 1] == 0x0D { end &-= 1 }
      try read(start, end)
      scanner.position &+= 1
    }
    return entries
  }

  private mutating func read(_ start: Int, _ end: Int) throws(ViewError) {
    let text = scanner.text
    var (first, last) = (start, end)
    while first < last, text[first].isBlank { first &+= 1 }
    while last > first, text[last &- 1].isBlank { last &-= 1 }
    for index in first..<last where text[index].isControl {
      throw scanner.fault("it has a control character")
    }
    guard first < last, text[first] != UInt8(ascii: "#"), text[first] != UInt8(ascii: ";") else { return }
    if let key, first &- start > indentation { return try readNested(key, first..<last) }
    indentation = first &- start
    if text[first] == UInt8(ascii: "[") { return try readSection(first..<last) }
    guard let section else { throw scanner.fault("a key stands before the first section") }
    let (name, value) = try split(first..<last)
    try add([section, name], value)
    key = (name, value.isEmpty)
  }

  private mutating func readSection(_ range: Range<Int>) throws(ViewError) {
    let text = scanner.text
    guard text[range.upperBound &- 1] == UInt8(ascii: "]"), range.count > 2 else {
      throw scanner.fault("a section is not closed by `]` at the end of its line")
    }
    let name = try scanner.name(range.lowerBound &+ 1..<range.upperBound &- 1)
    guard IniCodec.isSection(name) else { throw scanner.fault("it is no name of a section") }
    section = name
    key = nil
  }

  private mutating func readNested(
    _ parent: (name: String, isEmpty: Bool), _ range: Range<Int>
  ) throws(ViewError) {
    guard parent.isEmpty, let section else {
      throw scanner.fault("a value of several lines; indented lines are settings below a key without a value")
    }
    // The key that was taken for one with an empty value has settings instead.
    if entries.last?.name == [section, parent.name] { _ = entries.popLast() }
    let (name, value) = try split(range)
    try add([section, parent.name, name], value)
  }

  private mutating func split(_ range: Range<Int>) throws(ViewError) -> (String, Range<Int>) {
    let text = scanner.text
    guard let equals = text.firstOffset(of: UInt8(ascii: "="), from: range.lowerBound),
      equals < range.upperBound
    else { throw scanner.fault("it is neither `[SECTION]` nor `KEY = VALUE`") }
    var (end, start) = (equals, equals &+ 1)
    while end > range.lowerBound, text[end &- 1].isBlank { end &-= 1 }
    while start < range.upperBound, text[start].isBlank { start &+= 1 }
    let name = try scanner.name(range.lowerBound..<end).lowercased()
    guard IniCodec.isKey(name) else { throw scanner.fault("it is no name of a key") }
    // An empty value stands behind `=`, whatever blanks follow.
    return (name, start < range.upperBound ? start..<range.upperBound : equals &+ 1..<equals &+ 1)
  }

  private mutating func add(_ name: [String], _ value: Range<Int>) throws(ViewError) {
    if let fault = IniCodec.fault(in: scanner.text.extracting(value)) {
      throw scanner.fault(fault, entry: name)
    }
    entries.append(
      ViewDocument.Entry(
        name: name, line: scanner.line(), range: value, coding: .bare,
        steps: value.isEmpty ? [] : [.verbatim(value.count)]))
  }
}
