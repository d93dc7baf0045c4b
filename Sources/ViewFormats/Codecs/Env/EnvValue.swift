import Platform

/// A value as one dialect reads it.
struct EnvReading {
  /// Where it stands, its quotes included.
  var range: Range<Int>
  var coding: ValueCoding
  var steps: [SpellingStep]
}

/// Why a dialect does not read a value, or not surely as it is meant.
struct EnvFault: Error {
  let reason: String

  init(_ reason: String) {
    self.reason = reason
  }

  static let expansion = EnvFault(
    "it fills in another variable or a command, which a view can't keep; write the value itself, or quote the `$`"
  )
  static let open = EnvFault("a quote is not closed")
  static let control = EnvFault("it has a control character, or a line that ends in CR")
  static let rest = EnvFault("something follows the value; write one variable a line, and quote blanks")
}

/// The readers of the dialects. Each follows the source of the real one, and refuses what that one reads by luck: an open
/// quote that a later line closes, a blank that it trims by its own table.
///
/// All take the text and the offset behind `=`.
enum EnvValue {
  static func read(_ text: Span<UInt8>, from start: Int, _ dialect: EnvDialect) throws(EnvFault) -> EnvReading
  {
    switch dialect {
    case .sh, .portable: return try readShell(text, from: start)
    case .docker: return try readLine(text, from: start)
    case .systemd: return try readSystemd(text, from: start)
    case .compose, .node, .python: return try readQuotedOrBare(text, from: start, dialect)
    }
  }

  static func quote(_ byte: UInt8?, _ dialect: EnvDialect) -> ValueCoding? {
    switch byte {
    case UInt8(ascii: "'"): .singleQuoted
    case UInt8(ascii: "\""): .doubleQuoted
    case UInt8(ascii: "`") where dialect == .node: .backquoted
    default: nil
    }
  }

  private static func byte(_ text: Span<UInt8>, _ index: Int) -> UInt8? {
    index >= 0 && index < text.count ? text[index] : nil
  }

  private static func skipBlanks(_ text: Span<UInt8>, _ start: Int) -> Int {
    var index = start
    while let byte = byte(text, index), byte.isBlank { index &+= 1 }
    return index
  }

  private static func endOfLine(_ text: Span<UInt8>, _ start: Int) -> Int {
    text.firstOffset(of: 0x0A, from: start) ?? text.count
  }

  // MARK: docker

  /// Docker's `bufio.Scanner` has room for so many bytes of a line.
  static let longestLine = 65_535

  /// Everything up to the end of the line but for one CR.
  private static func readLine(_ text: Span<UInt8>, from start: Int) throws(EnvFault) -> EnvReading {
    var end = endOfLine(text, start)
    if end > start, text[end &- 1] == 0x0D { end &-= 1 }
    for index in start..<end where text[index] == 0 { throw .control }
    var steps = SpellingBuilder()
    steps.verbatim(end &- start)
    return EnvReading(range: start..<end, coding: .bare, steps: steps.steps)
  }

  // MARK: sh

  /// A word of POSIX (Shell Command Language, 2.2 and 2.3), of pieces with and without quotes.
  private static func readShell(_ text: Span<UInt8>, from start: Int) throws(EnvFault) -> EnvReading {
    var steps = SpellingBuilder()
    var index = start
    while let byte = byte(text, index), byte != 0x0A, !byte.isBlank {
      switch byte {
      case UInt8(ascii: "'"): index = try readSingle(text, index, &steps)
      case UInt8(ascii: "\""): index = try readDouble(text, index, expands: true, &steps)
      case UInt8(ascii: "\\"): index = try readEscape(text, index, &steps)
      case UInt8(ascii: "$"), UInt8(ascii: "`"): throw .expansion
      case UInt8(ascii: "~") where isTildePlace(text, index, start): throw .expansion
      case UInt8(ascii: ";"), UInt8(ascii: "&"), UInt8(ascii: "|"), UInt8(ascii: "<"), UInt8(ascii: ">"),
        UInt8(ascii: "("), UInt8(ascii: ")"), UInt8(ascii: "{"), UInt8(ascii: "}"):
        throw EnvFault("it has a character that a shell does not take as one of a word; quote it")
      case 0..<0x20, 0x7F: throw .control
      default:
        steps.verbatim()
        index &+= 1
      }
    }
    let isQuoted = start < index && text[start] == UInt8(ascii: "'")
    let isDouble = start < index && text[start] == UInt8(ascii: "\"")
    return EnvReading(
      range: start..<index, coding: isQuoted ? .singleQuoted : isDouble ? .doubleQuoted : .bare,
      steps: steps.steps)
  }

  private static func isTildePlace(_ text: Span<UInt8>, _ index: Int, _ start: Int) -> Bool {
    index == start || text[index &- 1] == UInt8(ascii: ":") || text[index &- 1] == UInt8(ascii: "=")
  }

  private static func readEscape(
    _ text: Span<UInt8>, _ index: Int, _ steps: inout SpellingBuilder
  ) throws(EnvFault) -> Int {
    guard let next = byte(text, index &+ 1), next != 0, next != 0x0D else { throw .control }
    // A backslash and a line feed are nothing.
    steps.syntax(next == 0x0A ? [0x5C, 0x0A] : [0x5C])
    if next != 0x0A { steps.verbatim() }
    return index &+ 2
  }

  /// Between single quotes of sh and systemd everything stands for itself. Returns what comes behind.
  private static func readSingle(
    _ text: Span<UInt8>, _ start: Int, _ steps: inout SpellingBuilder
  ) throws(EnvFault) -> Int {
    guard let end = text.firstOffset(of: UInt8(ascii: "'"), from: start &+ 1) else { throw .open }
    for index in start..<end where text[index] == 0 { throw .control }
    steps.syntax(UInt8(ascii: "'"))
    steps.verbatim(end &- start &- 1)
    steps.syntax(UInt8(ascii: "'"))
    return end &+ 1
  }

  /// Between double quotes of sh and systemd, where a backslash stands before `"`, `\`, `$`, a backquote and a line feed.
  private static func readDouble(
    _ text: Span<UInt8>, _ start: Int, expands: Bool, _ steps: inout SpellingBuilder
  ) throws(EnvFault) -> Int {
    steps.syntax(UInt8(ascii: "\""))
    var index = start &+ 1
    while let byte = byte(text, index) {
      switch byte {
      case UInt8(ascii: "\""):
        steps.syntax(byte)
        return index &+ 1
      case UInt8(ascii: "$") where expands, UInt8(ascii: "`") where expands: throw .expansion
      case 0: throw .control
      case UInt8(ascii: "\\"):
        switch Self.byte(text, index &+ 1) {
        case 0x0A?: steps.syntax([0x5C, 0x0A])
        case UInt8(ascii: "\"")?, UInt8(ascii: "\\")?, UInt8(ascii: "$")?, UInt8(ascii: "`")?:
          steps.syntax(byte)
          steps.verbatim()
        case 0?, nil: throw .control
        default: steps.verbatim(2)
        }
        index &+= 2
      default:
        steps.verbatim()
        index &+= 1
      }
    }
    throw .open
  }

  // MARK: systemd

  /// `parse_env_file_internal` of systemd's env-file.c, without what may follow a closing quote.
  private static func readSystemd(_ text: Span<UInt8>, from start: Int) throws(EnvFault) -> EnvReading {
    let first = skipBlanks(text, start)
    var steps = SpellingBuilder()
    guard let coding = quote(byte(text, first), .systemd) else {
      let reading = try readSystemdBare(text, start, first)
      return reading
    }
    let end =
      coding == .singleQuoted
      ? try readSingle(text, first, &steps) : try readDouble(text, first, expands: false, &steps)
    for index in first..<end where text[index].isControl && text[index] != 0x0A { throw .control }
    return EnvReading(range: first..<end, coding: coding, steps: steps.steps)
  }

  private static func readSystemdBare(
    _ text: Span<UInt8>, _ start: Int, _ first: Int
  ) throws(EnvFault) -> EnvReading {
    var steps = SpellingBuilder()
    var index = first
    // Where the value ends without the blanks behind it, and the steps up to there.
    var (end, count, blanks) = (first, 0, 0)
    while let byte = byte(text, index), byte != 0x0A {
      if byte == UInt8(ascii: "\\") {
        steps.verbatim(blanks)
        index = try readEscape(text, index, &steps)
        (end, blanks) = (index, 0)
      } else if byte.isBlank {
        blanks &+= 1
        index &+= 1
      } else if byte == 0x0D, Self.byte(text, index &+ 1) == 0x0A {
        break
      } else if byte.isControl {
        throw .control
      } else {
        steps.verbatim(blanks &+ 1)
        index &+= 1
        (end, blanks) = (index, 0)
      }
      count &+= 1
    }
    if count == 0 { return EnvReading(range: start..<start, coding: .bare, steps: []) }
    return EnvReading(range: first..<max(first, end), coding: .bare, steps: steps.steps)
  }

  // MARK: compose, node, python

  private static func readQuotedOrBare(
    _ text: Span<UInt8>, from start: Int, _ dialect: EnvDialect
  ) throws(EnvFault) -> EnvReading {
    let first = skipBlanks(text, start)
    guard let coding = quote(byte(text, first), dialect) else {
      return try readBare(text, start, first, dialect)
    }
    var steps = SpellingBuilder()
    let end: Int
    switch dialect {
    case .compose: end = try readCompose(text, first, coding, &steps)
    case .node: end = try readNode(text, first, coding, &steps)
    default: end = try readPython(text, first, coding, &steps)
    }
    // Readers turn it into a line feed, or drop it.
    for index in first..<end where text[index] == 0x0D || text[index] == 0 { throw .control }
    if dialect == .python { try refuseBraces(text, first..<end) }
    return EnvReading(range: first..<end, coding: coding, steps: steps.steps)
  }

  private static func readBare(
    _ text: Span<UInt8>, _ start: Int, _ first: Int, _ dialect: EnvDialect
  ) throws(EnvFault) -> EnvReading {
    var end = endOfLine(text, first)
    if end > first, text[end &- 1] == 0x0D { end &-= 1 }
    let hash = UInt8(ascii: "#")
    if first < end, text[first] == hash, dialect != .node {
      throw EnvFault("it begins with `#`, which is a comment elsewhere; quote it")
    }
    for index in first..<end where text[index] == hash {
      let before = index > first ? text[index &- 1] : 0x20
      if dialect == .node || before == 0x20 || before == 0x09 && dialect == .python {
        end = index
        break
      }
      guard before > 0x20, before < 0x80 else {
        throw EnvFault("`#` stands behind an odd blank; quote the value")
      }
    }
    for index in first..<end {
      if text[index].isControl { throw .control }
      if text[index] == UInt8(ascii: "$"), dialect == .compose { throw .expansion }
    }
    while end > first, text[end &- 1].isBlank { end &-= 1 }
    // A step without bytes: an empty value that stands so may stand so again, which by itself it may not.
    guard first < end else { return EnvReading(range: start..<start, coding: .bare, steps: [.syntax([])]) }
    if UTF8Text.hasBlankEnds(text.extracting(first..<end)) {
      throw EnvFault("an odd blank begins or ends it; quote the value")
    }
    if dialect == .python { try refuseBraces(text, first..<end) }
    return EnvReading(range: first..<end, coding: .bare, steps: [.verbatim(end &- first)])
  }

  /// python-dotenv fills in `${NAME}` whatever the quotes are, and has no escape for it.
  private static func refuseBraces(_ text: Span<UInt8>, _ range: Range<Int>) throws(EnvFault) {
    var isOpen = false
    for index in range {
      if text[index] == UInt8(ascii: "{"), index > range.lowerBound, text[index &- 1] == UInt8(ascii: "$") {
        isOpen = true
      } else if isOpen, text[index] == UInt8(ascii: "}") {
        throw EnvFault("python-dotenv fills in `${…}` in every value, and has no escape for it")
      }
    }
  }

  /// compose-go's `extractVarValue`, then between double quotes `expandEscapes` and the expansion of variables.
  private static func readCompose(
    _ text: Span<UInt8>, _ start: Int, _ coding: ValueCoding, _ steps: inout SpellingBuilder
  ) throws(EnvFault) -> Int {
    let quote = text[start]
    let isDouble = coding == .doubleQuoted
    steps.syntax(quote)
    var index = start &+ 1
    while let byte = byte(text, index) {
      if byte == quote {
        steps.syntax(quote)
        return index &+ 1
      }
      guard byte == UInt8(ascii: "\\") else {
        if isDouble, byte == UInt8(ascii: "$") { throw .expansion }
        steps.verbatim()
        index &+= 1
        continue
      }
      guard let next = Self.byte(text, index &+ 1) else { throw .open }
      if next == quote || isDouble && (next == UInt8(ascii: "\\") || next == UInt8(ascii: "$")) {
        steps.syntax(byte)
        steps.verbatim()
      } else if isDouble, next == UInt8(ascii: "0") {
        throw EnvFault("it has an octal escape; write the character itself")
      } else if isDouble, Spelling.byte(next) != nil {
        steps.add(.letter)
      } else {
        steps.verbatim(2)
      }
      index &+= 2
    }
    throw .open
  }

  /// The expression of npm's `dotenv`. It finds the last quote of several by backtracking, so a quote inside is refused.
  private static func readNode(
    _ text: Span<UInt8>, _ start: Int, _ coding: ValueCoding, _ steps: inout SpellingBuilder
  ) throws(EnvFault) -> Int {
    let quote = text[start]
    steps.syntax(quote)
    var index = start &+ 1
    while let byte = byte(text, index) {
      if byte == quote {
        guard text[index &- 1] != UInt8(ascii: "\\") else {
          throw EnvFault("a backslash stands before a quote; use other quotes")
        }
        steps.syntax(quote)
        return index &+ 1
      }
      let next = Self.byte(text, index &+ 1)
      if coding == .doubleQuoted, byte == UInt8(ascii: "\\"),
        next == UInt8(ascii: "n") || next == UInt8(ascii: "r")
      {
        steps.add(.letter)
        index &+= 2
      } else {
        steps.verbatim()
        index &+= 1
      }
    }
    throw .open
  }

  /// The expressions of python-dotenv: a quote behind a backslash never closes, whatever stands before that.
  private static func readPython(
    _ text: Span<UInt8>, _ start: Int, _ coding: ValueCoding, _ steps: inout SpellingBuilder
  ) throws(EnvFault) -> Int {
    let quote = text[start]
    let backslash = UInt8(ascii: "\\")
    guard var end = text.firstOffset(of: quote, from: start &+ 1) else { throw .open }
    while end > start &+ 1, text[end &- 1] == backslash {
      guard let next = text.firstOffset(of: quote, from: end &+ 1) else { throw .open }
      end = next
    }
    steps.syntax(quote)
    var index = start &+ 1
    while index < end {
      let next = text[index &+ 1]
      let isEscape = text[index] == backslash && index &+ 1 < end
      if isEscape, next == backslash || next == UInt8(ascii: "'") || coding == .doubleQuoted && next == quote
      {
        steps.syntax(backslash)
        steps.verbatim()
        index &+= 2
      } else if isEscape, coding == .doubleQuoted, Spelling.byte(next) != nil {
        steps.add(.letter)
        index &+= 2
      } else {
        steps.verbatim()
        index &+= 1
      }
    }
    steps.syntax(quote)
    return end &+ 1
  }
}
