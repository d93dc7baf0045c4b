import Platform

/// The lines of an environment file: comments, blank lines, and `NAME=value`.
enum EnvFile {
  static func entries(of text: Span<UInt8>, _ dialect: EnvDialect) throws(ViewError) -> [ViewDocument.Entry] {
    var scanner = TextScanner(text)
    if dialect != .sh { try scanner.requireUTF8() }
    var entries: [ViewDocument.Entry] = []
    while true {
      scanner.skipBlanks()
      guard let byte = scanner.peek() else { return entries }
      if byte == 0x0A || byte == 0x0D && scanner.peek(1) == 0x0A && dialect != .sh {
        scanner.position &+= byte == 0x0A ? 1 : 2
      } else if byte == UInt8(ascii: "#") || byte == UInt8(ascii: ";") && dialect == .systemd {
        try skipComment(&scanner, dialect)
      } else if let entry = try entry(&scanner, dialect) {
        entries.append(entry)
      }
    }
  }

  private static func skipComment(_ scanner: inout TextScanner, _ dialect: EnvDialect) throws(ViewError) {
    let start = scanner.position
    scanner.skipLine()
    let end = scanner.position
    if dialect == .systemd, end > start, scanner.text[end &- 1] == UInt8(ascii: "\\") {
      throw scanner.fault("a comment ends in a backslash: systemd's versions differ in what the next line is")
    }
    guard dialect != .docker else { return }
    for index in start..<end where scanner.text[index] == 0x0D && index &+ 1 < end || scanner.text[index] == 0
    {
      throw scanner.fault("a comment has a CR or NUL, which ends it for some programs")
    }
  }

  /// nil: the line names a variable of the environment and no value.
  private static func entry(
    _ scanner: inout TextScanner, _ dialect: EnvDialect
  ) throws(ViewError) -> ViewDocument.Entry? {
    let lineStart = scanner.position
    if dialect != .docker, dialect != .systemd, skipExport(&scanner) { scanner.skipBlanks() }
    let start = scanner.position
    while let byte = scanner.peek(), byte != 0x0A, byte != UInt8(ascii: "="), !byte.isBlank, byte != 0x0D {
      scanner.position &+= 1
    }
    let range = start..<scanner.position
    guard isName(scanner.text.extracting(range), dialect) else {
      throw scanner.fault("it is not of the form NAME=value")
    }
    if dialect != .sh, dialect != .docker { scanner.skipBlanks() }
    if dialect == .docker || dialect == .compose, isAtLineEnd(scanner) {
      try finishLine(&scanner, dialect)
      return nil
    }
    let name = [try scanner.name(range)]
    guard scanner.take(UInt8(ascii: "=")) else {
      throw scanner.fault("it is not of the form NAME=value", entry: name)
    }
    let line = scanner.line()
    let reading: EnvReading
    do throws(EnvFault) { reading = try EnvValue.read(scanner.text, from: scanner.position, dialect) } catch {
      throw scanner.fault(error.reason, entry: name)
    }
    scanner.position = reading.range.upperBound
    try finishLine(&scanner, dialect, entry: name)
    if dialect == .docker, scanner.position &- lineStart > EnvValue.longestLine {
      throw scanner.fault("docker reads lines of at most \(EnvValue.longestLine) bytes", entry: name)
    }
    return ViewDocument.Entry(
      name: name, line: line, range: reading.range, coding: reading.coding, steps: reading.steps)
  }

  private static func skipExport(_ scanner: inout TextScanner) -> Bool {
    let word = Array("export".utf8)
    guard word.indices.allSatisfy({ scanner.peek($0) == word[$0] }), scanner.peek(word.count)?.isBlank == true
    else {
      return false
    }
    scanner.position &+= word.count
    return true
  }

  private static func isAtLineEnd(_ scanner: borrowing TextScanner) -> Bool {
    scanner.isAtEnd || scanner.peek() == 0x0A || scanner.peek() == 0x0D && scanner.peek(1) == 0x0A
  }

  /// Blanks, a comment where the dialect has them, and the line feed.
  private static func finishLine(
    _ scanner: inout TextScanner, _ dialect: EnvDialect, entry: [String]? = nil
  ) throws(ViewError) {
    let start = scanner.position
    scanner.skipBlanks()
    let mayComment =
      switch dialect {
      case .docker, .systemd: false
      case .sh, .portable, .compose, .python: scanner.position > start
      case .node: true
      }
    if scanner.peek() == UInt8(ascii: "#"), mayComment { try skipComment(&scanner, dialect) }
    if dialect != .sh, scanner.peek() == 0x0D, scanner.peek(1) == 0x0A { scanner.position &+= 1 }
    guard scanner.isAtEnd || scanner.take(0x0A) else {
      throw scanner.fault(EnvFault.rest.reason, entry: entry)
    }
  }

  static func isName(_ name: Span<UInt8>, _ dialect: EnvDialect) -> Bool {
    guard !name.isEmpty else { return false }
    let isStrict = dialect == .sh || dialect == .systemd || dialect == .portable
    // compose-go skips names that begin with a digit.
    if name[0].isDigit, isStrict || dialect == .compose { return false }
    for index in name.indices {
      let byte = name[index]
      if byte.isASCIILetter || byte == UInt8(ascii: "_") { continue }
      if byte.isDigit { continue }
      guard !isStrict, byte == UInt8(ascii: ".") || byte == UInt8(ascii: "-") else { return false }
    }
    return true
  }
}
