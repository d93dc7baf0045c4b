import Platform
import SecretMemory

/// `~/.netrc`, as far as curl, Python and ftp read it alike: UTF-8, no quotes, no backslashes.
struct NetrcCodec: ViewCodec {
  func entries(of text: Span<UInt8>) throws(ViewError) -> [ViewDocument.Entry] {
    var reader = NetrcReader(text)
    return try reader.read()
  }

  func write(
    _ value: Span<UInt8>, _ style: SlotStyle, to writer: inout SecretWriter
  ) throws(ViewError) -> String? {
    guard NetrcReader.isToken(value) else {
      return
        "the value is empty, begins with `#`, or has a blank, a quote, a backslash, a control character or one that is not UTF-8, for which "
        + "the format has no escape"
    }
    try writer.append(value)
    return nil
  }

  func lay(out names: [[String]], into layout: inout FreshLayout) throws(ViewError) {
    var machines: [[String]] = []
    var members: [[String]: [Int]] = [:]
    for (index, name) in names.enumerated() {
      guard (2...3).contains(name.count), let kind = name.last, kind == "password" || kind == "account",
        name.dropLast().allSatisfy({ NetrcReader.isToken(Array($0.utf8).span) })
      else {
        throw ViewError(.EINVAL, entry: name, "it is not a machine, a login and `password` or `account`")
      }
      let machine = Array(name.dropLast())
      if members[machine] == nil { machines.append(machine) }
      members[machine, default: []].append(index)
    }
    // `default` ends what programs look at.
    let last = machines.filter { $0[0] == "default" }
    for machine in machines.filter({ $0[0] != "default" }) + last {
      try layout.write(machine[0] == "default" ? "default" : "machine \(machine[0])")
      if machine.count > 1 { try layout.write(" login \(machine[1])") }
      for index in members[machine] ?? [] {
        try layout.write(" \(names[index].last ?? "") ")
        layout.place(index, SlotStyle(coding: .bare))
      }
      try layout.write("\n")
    }
  }
}

private struct NetrcReader: ~Escapable {
  private var scanner: TextScanner
  private var entries: [ViewDocument.Entry] = []
  private var machine: [String]?
  private var login: [String] = []
  /// Passwords and accounts of the present machine, whose login may follow.
  private var secrets: [(kind: String, range: Range<Int>, line: Int)] = []

  @_lifetime(copy text)
  init(_ text: Span<UInt8>) {
    scanner = TextScanner(text)
  }

  /// Whether every reader takes it as one token.
  static func isToken(_ token: Span<UInt8>) -> Bool {
    guard !token.isEmpty, token[0] != UInt8(ascii: "#") else { return false }
    guard UTF8Text.isValid(token) else { return false }
    for index in token.indices {
      let byte = token[index]
      guard byte > 0x20, byte != 0x7F, byte != UInt8(ascii: "\""), byte != UInt8(ascii: "\\") else {
        return false
      }
    }
    return true
  }

  mutating func read() throws(ViewError) -> [ViewDocument.Entry] {
    try scanner.requireUTF8()
    while let word = try word() {
      switch word {
      case "machine":
        finishMachine()
        machine = [try name()]
      case "default":
        finishMachine()
        machine = ["default"]
      case "macdef": try skipMacro()
      case "login" where machine != nil: login = [try name()]
      case "password" where machine != nil, "account" where machine != nil:
        secrets.append((word, try token(), scanner.line()))
      default:
        throw scanner.fault("a word is not `machine`, `default`, `login`, `password`, `account` or `macdef`")
      }
    }
    finishMachine()
    return entries
  }

  private mutating func finishMachine() {
    for secret in secrets {
      entries.append(
        ViewDocument.Entry(
          name: (machine ?? []) + login + [secret.kind], line: secret.line, range: secret.range,
          coding: .bare,
          steps: [.verbatim(secret.range.count)]))
    }
    (secrets, login) = ([], [])
  }

  /// The next word of the grammar; nil: the text is at its end.
  private mutating func word() throws(ViewError) -> String? {
    while let byte = scanner.peek() {
      if byte == UInt8(ascii: "#") {
        scanner.skipLine()
      } else if byte.isBlank || byte == 0x0A || byte == 0x0D && scanner.peek(1) == 0x0A {
        scanner.position &+= 1
      } else {
        return try name()
      }
    }
    return nil
  }

  private mutating func name() throws(ViewError) -> String { try scanner.name(try token()) }

  private mutating func token() throws(ViewError) -> Range<Int> {
    while let byte = scanner.peek(), byte.isBlank || byte == 0x0A || byte == 0x0D && scanner.peek(1) == 0x0A {
      scanner.position &+= 1
    }
    let start = scanner.position
    while let byte = scanner.peek(), !byte.isBlank, byte != 0x0A, byte != 0x0D { scanner.position &+= 1 }
    guard Self.isToken(scanner.text.extracting(start..<scanner.position)) else {
      throw scanner.fault(
        "a value is missing, or has a quote, a backslash or a control character, or begins with `#`")
    }
    return start..<scanner.position
  }

  /// A macro goes up to an empty line.
  private mutating func skipMacro() throws(ViewError) {
    _ = try name()
    scanner.skipLine()
    while !scanner.isAtEnd {
      scanner.position &+= 1
      let start = scanner.position
      scanner.skipLine()
      if scanner.position == start { return }
    }
  }
}
