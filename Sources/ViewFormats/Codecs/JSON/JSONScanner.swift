import Platform
import SecretMemory

/// Reads JSON (RFC 8259) and reports its strings and numbers with their paths.
struct JSONScanner: ~Escapable {
  /// A string or a number.
  struct Leaf {
    let path: [String]
    let line: Int
    /// Of a string with its quotes.
    let range: Range<Int>
    let isString: Bool
    let steps: [SpellingStep]
  }

  private var scanner: TextScanner
  private(set) var leaves: [Leaf] = []
  private var path: [String] = []

  @_lifetime(copy text)
  init(_ text: Span<UInt8>) {
    scanner = TextScanner(text)
  }

  /// The strings and numbers of a text whose value is an object or an array.
  mutating func scan() throws(ViewError) {
    try scanner.requireUTF8()
    skipSpace()
    guard scanner.peek() == UInt8(ascii: "{") || scanner.peek() == UInt8(ascii: "[") else {
      throw scanner.fault("it is no JSON object or array")
    }
    try value()
    skipSpace()
    guard scanner.isAtEnd else { throw scanner.fault("something follows the end") }
  }

  private mutating func skipSpace() {
    while let byte = scanner.peek(), byte.isBlank || byte == 0x0A || byte == 0x0D { scanner.position &+= 1 }
  }

  private mutating func value() throws(ViewError) {
    let line = scanner.line()
    switch scanner.peek() {
    case UInt8(ascii: "{")?: try members()
    case UInt8(ascii: "[")?: try elements()
    case UInt8(ascii: "\"")?:
      let (range, steps) = try string()
      leaves.append(Leaf(path: path, line: line, range: range, isString: true, steps: steps))
    case UInt8(ascii: "t")?: try word("true")
    case UInt8(ascii: "f")?: try word("false")
    case UInt8(ascii: "n")?: try word("null")
    default:
      let end = JSONNumber.end(of: scanner.text, from: scanner.position)
      guard let end else { throw scanner.fault("a value is missing or unknown") }
      let range = scanner.position..<end
      leaves.append(
        Leaf(path: path, line: line, range: range, isString: false, steps: [.verbatim(range.count)]))
      scanner.position = end
    }
    guard leaves.count <= ViewLimits.entries else { throw ViewLimits.tooManyEntries }
  }

  private mutating func word(_ word: String) throws(ViewError) {
    for byte in word.utf8 {
      guard scanner.take(byte) else { throw scanner.fault("a value is missing or unknown") }
    }
  }

  private mutating func members() throws(ViewError) {
    try begin()
    var names: Set<String> = []
    skipSpace()
    guard !scanner.take(UInt8(ascii: "}")) else { return }
    repeat {
      skipSpace()
      guard scanner.peek() == UInt8(ascii: "\"") else { throw scanner.fault("a name in quotes is missing") }
      let name = try name()
      guard names.insert(name).inserted else {
        throw scanner.fault("a name stands twice in one object", entry: path + [name])
      }
      skipSpace()
      guard scanner.take(UInt8(ascii: ":")) else { throw scanner.fault("a colon is missing") }
      skipSpace()
      path.append(name)
      try value()
      _ = path.popLast()
      skipSpace()
    } while scanner.take(UInt8(ascii: ","))
    guard scanner.take(UInt8(ascii: "}")) else { throw scanner.fault("a comma or `}` is missing") }
  }

  private mutating func elements() throws(ViewError) {
    try begin()
    skipSpace()
    guard !scanner.take(UInt8(ascii: "]")) else { return }
    var number = 0
    repeat {
      skipSpace()
      path.append("\(number)")
      try value()
      _ = path.popLast()
      number &+= 1
      skipSpace()
    } while scanner.take(UInt8(ascii: ","))
    guard scanner.take(UInt8(ascii: "]")) else { throw scanner.fault("a comma or `]` is missing") }
  }

  private mutating func begin() throws(ViewError) {
    guard path.count < ViewLimits.depth else {
      throw ViewError(.EFBIG, line: scanner.line(), "it is nested more than \(ViewLimits.depth) deep")
    }
    scanner.position &+= 1
  }

  private mutating func name() throws(ViewError) -> String {
    let (range, steps) = try string()
    var writer = try SecretWriter(capacity: range.count)
    try Spelling.decode(scanner.text, from: range.lowerBound, steps, to: &writer)
    let name = writer.finish()
    return name.span.text
  }

  private mutating func string() throws(ViewError) -> (Range<Int>, [SpellingStep]) {
    let start = scanner.position
    do throws(EnvFault) {
      let (end, steps) = try JSONString.read(scanner.text, from: start)
      scanner.position = end
      return (start..<end, steps)
    } catch { throw scanner.fault(error.reason) }
  }
}

enum JSONNumber {
  /// Where a number that begins at an offset ends; nil: there is none.
  static func end(of text: Span<UInt8>, from start: Int) -> Int? {
    var index = start
    func byte() -> UInt8? { index < text.count ? text[index] : nil }
    func skipDigits() -> Bool {
      let first = index
      while byte()?.isDigit == true { index &+= 1 }
      return index > first
    }
    if byte() == UInt8(ascii: "-") { index &+= 1 }
    if byte() == UInt8(ascii: "0") { index &+= 1 } else if !skipDigits() { return nil }
    if byte() == UInt8(ascii: ".") {
      index &+= 1
      guard skipDigits() else { return nil }
    }
    if let letter = byte(), letter | 0x20 == UInt8(ascii: "e") {
      index &+= 1
      if byte() == UInt8(ascii: "+") || byte() == UInt8(ascii: "-") { index &+= 1 }
      guard skipDigits() else { return nil }
    }
    return index
  }
}

enum JSONString {
  /// Reads a string whose first quote stands at an offset. Returns what comes behind the last quote.
  static func read(
    _ text: Span<UInt8>, from start: Int
  ) throws(EnvFault) -> (end: Int, steps: [SpellingStep]) {
    var steps = SpellingBuilder()
    steps.syntax(UInt8(ascii: "\""))
    var index = start &+ 1
    while index < text.count {
      switch text[index] {
      case UInt8(ascii: "\""):
        steps.syntax(UInt8(ascii: "\""))
        return (index &+ 1, steps.steps)
      case UInt8(ascii: "\\"): index = try readEscape(text, index, &steps)
      case 0..<0x20: throw EnvFault("a string has a control character or a line feed; write an escape")
      default:
        steps.verbatim()
        index &+= 1
      }
    }
    throw EnvFault("a string is not closed")
  }

  private static func readEscape(
    _ text: Span<UInt8>, _ index: Int, _ steps: inout SpellingBuilder
  ) throws(EnvFault) -> Int {
    switch index &+ 1 < text.count ? text[index &+ 1] : 0 {
    case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"):
      steps.syntax(UInt8(ascii: "\\"))
      steps.verbatim()
    case UInt8(ascii: "n"), UInt8(ascii: "r"), UInt8(ascii: "t"), UInt8(ascii: "b"), UInt8(ascii: "f"):
      steps.add(.letter)
    case UInt8(ascii: "u"): return try readUnits(text, index, &steps)
    default: throw EnvFault("a string has an unknown escape")
    }
    return index &+ 2
  }

  private static func readUnits(
    _ text: Span<UInt8>, _ index: Int, _ steps: inout SpellingBuilder
  ) throws(EnvFault) -> Int {
    guard isUnit(text, index) else { throw EnvFault("an escape is not four hexadecimal digits") }
    let mask = Spelling.mask(text, index)
    let first = Spelling.unit(text, index)
    guard (0xD800...0xDFFF).contains(first) else {
      steps.add(.unit(mask))
      return index &+ 6
    }
    guard first < 0xDC00, isUnit(text, index &+ 6),
      (0xDC00...0xDFFF).contains(Spelling.unit(text, index &+ 6))
    else {
      throw EnvFault("an escape is half a character")
    }
    steps.add(.pair(mask << 4 | Spelling.mask(text, index &+ 6)))
    return index &+ 12
  }

  private static func isUnit(_ text: Span<UInt8>, _ index: Int) -> Bool {
    guard index &+ 6 <= text.count, text[index] == UInt8(ascii: "\\"), text[index &+ 1] == UInt8(ascii: "u")
    else {
      return false
    }
    return (2..<6).allSatisfy { Hexadecimal.value(text[index &+ $0]) != nil }
  }

  /// A string with its quotes. What need not be escaped is not.
  static func write(_ value: Span<UInt8>, to writer: inout SecretWriter) throws(ViewError) {
    try writer.append(UInt8(ascii: "\""))
    for index in value.indices { try writeCharacter(value[index], to: &writer) }
    try writer.append(UInt8(ascii: "\""))
  }

  private static func writeCharacter(_ byte: UInt8, to writer: inout SecretWriter) throws(ViewError) {
    switch byte {
    case UInt8(ascii: "\""), UInt8(ascii: "\\"): try writer.append([UInt8(ascii: "\\"), byte])
    case 0x08, 0x09, 0x0A, 0x0C, 0x0D: try writer.append([UInt8(ascii: "\\"), Spelling.letter(byte) ?? 0])
    case 0..<0x20:
      try writer.append("\\u00")
      try writer.append(Hexadecimal.digit(byte >> 4, isUpperCase: false))
      try writer.append(Hexadecimal.digit(byte & 0xF, isUpperCase: false))
    default: try writer.append(byte)
    }
  }
}
