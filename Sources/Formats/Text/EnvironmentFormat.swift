import Model
import Platform
import SecretMemory

/// `--format env`: lines `NAME='value'`, as a shell's `.` and most readers of `.env` files take them.
///
/// A setting's name is its key, an item's its account, with `_` for what a variable's name can't have. Items whose names
/// would be the same get their service before it, or all of them where that is asked for. What no variable can hold is an
/// error, before anything is written.
struct EnvironmentFormat {
  let codec: SettingCodec
  /// Whether each item's name begins with its service.
  var prefixesService = false

  // MARK: Writing

  func write(_ contents: ExportContents, to sink: ByteSink) throws(FormatError) {
    let items = itemNames(contents)
    try checkNames(contents, items)
    for (_, settings) in contents.suites {
      for setting in settings {
        try sink.write(Self.name([setting.key.string]) + "=")
        let content = try codec.exported(setting.value)
        try write(content.span.extracting(droppingLast: min(1, content.count)), to: sink)
      }
    }
    for (item, name) in zip(contents.items, items) {
      guard let secret = try item.secret() else { continue }
      guard secret.span.firstOffset(of: 0) == nil else {
        throw FormatError("\(item.path) has a NUL, which no variable can hold")
      }
      try sink.write(name + "=")
      try write(secret.span, to: sink)
    }
  }

  /// The variables of the items, in their order.
  private func itemNames(_ contents: ExportContents) -> [String] {
    let short = contents.items.map { Self.name([Self.account(of: $0)]) }
    let settings = contents.suites.flatMap { $0.1.map { Self.name([$0.key.string]) } }
    let counts = (short + settings).reduce(into: [String: Int]()) { $0[$1, default: 0] += 1 }
    return zip(contents.items, short).map { item, name in
      prefixesService || counts[name, default: 0] > 1 ? Self.name(Self.names(of: item)) : name
    }
  }

  private func checkNames(_ contents: ExportContents, _ items: [String]) throws(FormatError) {
    var taken: [String: String] = [:]
    for (suite, settings) in contents.suites {
      for setting in settings {
        let path = "defaults/\(suite)/\(setting.key)"
        // An empty value has no type of its own: without bytes it is text too.
        if case .data(let bytes) = setting.value, !bytes.isEmpty {
          throw FormatError("\(path) is data, which no variable can hold")
        }
        try claim(Self.name([setting.key.string]), path, &taken)
      }
    }
    for (item, name) in zip(contents.items, items) { try claim(name, item.path, &taken) }
  }

  private func claim(
    _ name: String, _ path: String, _ taken: inout [String: String]
  ) throws(FormatError) {
    if let other = taken.updateValue(path, forKey: name) {
      throw FormatError("\(other) and \(path) would both be \(name)")
    }
  }

  /// Between single quotes everything stands for itself but the quote.
  private func write(_ bytes: Span<UInt8>, to sink: ByteSink) throws(FormatError) {
    try sink.write("'")
    for index in bytes.indices {
      let byte = bytes[index]
      if byte == UInt8(ascii: "'") { try sink.write("'\\''") } else { try sink.write(byte) }
    }
    try sink.write("'\n")
  }

  private static func value(_ name: String, of item: ExportItem) -> String? {
    let value = item.attributes.first { $0.name == "user." + name }?.value
    return value.map { String(decoding: $0, as: UTF8.self) }.flatMap { $0.isEmpty ? nil : $0 }
  }

  private static func account(of item: ExportItem) -> String {
    value("account", of: item) ?? names(of: item).first ?? ""
  }

  private static func names(of item: ExportItem) -> [String] {
    let names = item.itemClass == .other ? ["keyhole.label"] : ["service", "server", "account"]
    return names.compactMap { value($0, of: item) }
  }

  private static func name(_ names: [String]) -> String {
    let text = names.joined(separator: "_")
    let name = String(text.unicodeScalars.map { EnvironmentText.isNamePart($0) ? Character($0) : "_" })
    return name.first?.isNumber ?? true ? "_" + name : name
  }

  // MARK: Reading

  enum Target {
    case suite(ExactString)
    /// Each variable is an account of this service.
    case service(ExactString)
  }

  /// Of two variables with one name the last counts, as a shell has it.
  func read(_ source: ByteSource, to target: Target) throws(FormatError) -> Contents {
    var contents = Contents()
    for variable in lastOfEachName(try EnvironmentText.variables(in: source), &contents) {
      switch target {
      case .suite(let suite):
        let bytes = try variable.value.bytes()
        let value = codec.inferred(from: bytes.unprotected)
        contents.settings.append(SettingEntry(suite: suite, key: ExactString(variable.name), value: value))
      case .service(let service):
        let identity = ItemIdentity.generic(service: service, account: ExactString(variable.name))
        contents.items.append(ItemEntry(identity, [], variable.value))
      }
    }
    try source.check()
    return contents
  }

  private func lastOfEachName(
    _ variables: [EnvironmentText.Variable], _ contents: inout Contents
  ) -> [EnvironmentText.Variable] {
    let last = Dictionary(variables.enumerated().map { ($1.name, $0) }) { $1 }
    let kept = variables.enumerated().filter { last[$1.name] == $0 }.map(\.element)
    let omitted = variables.count - kept.count
    if omitted > 0 {
      contents.omitted = omitted
      let what =
        omitted == 1 ? "1 variable that is set again later" : "\(omitted) variables that are set again later"
      contents.remarks.append(what)
    }
    return kept
  }
}

/// The text of environment files: `NAME=value`, `export NAME="…"`, quotes as in a shell, comments.
enum EnvironmentText {
  typealias Variable = (name: String, value: SecretSlice)

  static func isNamePart(_ scalar: Unicode.Scalar) -> Bool {
    scalar == "_" || scalar.isASCII && (scalar.properties.isAlphabetic || ("0"..."9").contains(scalar))
  }

  static func variables(in source: ByteSource) throws(FormatError) -> [Variable] {
    var variables: [Variable] = []
    var position = source.starts("\u{FEFF}") ? 3 : 0
    var line = 1
    while position < source.count {
      let first = line
      let end = endOfValue(source, position)
      line &+= 1 &+ (position..<min(end, source.count)).count { source[$0] == UInt8(ascii: "\n") }
      let range = trimmed(source, position..<end)
      position = end + 1
      guard !range.isEmpty, source[range.lowerBound] != UInt8(ascii: "#") else { continue }
      guard let variable = variable(source, range) else {
        throw FormatError("line \(first) is not of the form NAME=value")
      }
      variables.append(variable)
    }
    return variables
  }

  /// The line feed that ends a line, which quotes may carry across several.
  private static func endOfValue(_ source: ByteSource, _ start: Int) -> Int {
    var first = start
    while first < source.count, isBlank(source[first]) { first += 1 }
    var isComment = first < source.count && source[first] == UInt8(ascii: "#")
    var quote: UInt8?
    var index = start
    while index < source.count {
      let byte = source[index]
      if byte == 0x0A, quote == nil || isComment { return index }
      // A quote in a comment behind a value is none.
      if isComment {
        index += 1
        continue
      }
      if quote == nil, byte == UInt8(ascii: "#"), index > start, source[index - 1] <= 0x20 {
        isComment = true
      } else if byte == UInt8(ascii: "\\"), quote != UInt8(ascii: "'") {
        index += 1
      } else if byte == quote {
        quote = nil
      } else if quote == nil, byte == UInt8(ascii: "'") || byte == UInt8(ascii: "\"") {
        quote = byte
      }
      index += 1
    }
    return source.count
  }

  private static func isBlank(_ byte: UInt8) -> Bool {
    byte == 0x20 || byte == 0x09 || byte == 0x0D
  }

  private static func trimmed(_ source: ByteSource, _ range: Range<Int>) -> Range<Int> {
    var start = range.lowerBound
    var end = min(range.upperBound, source.count)
    while start < end, isBlank(source[start]) || source[start] == 0x0A { start += 1 }
    while end > start, isBlank(source[end - 1]) { end -= 1 }
    return start..<max(start, end)
  }

  private static func variable(_ source: ByteSource, _ range: Range<Int>) -> Variable? {
    let start = source.starts("export ", at: range.lowerBound) ? range.lowerBound + 7 : range.lowerBound
    guard let equals = range.first(where: { source[$0] == UInt8(ascii: "=") }), equals > start,
      let name = source.text(trimmed(source, start..<equals)),
      name.unicodeScalars.allSatisfy({ isNamePart($0) || $0 == "." || $0 == "-" }),
      !(name.first?.isNumber ?? true)
    else { return nil }
    var value = trimmed(source, (equals + 1)..<range.upperBound)
    // `A= # comment` has no value.
    if value.lowerBound > equals + 1, value.lowerBound < value.upperBound,
      source[value.lowerBound] == UInt8(ascii: "#")
    {
      value = value.lowerBound..<value.lowerBound
    }
    return (name, SecretSlice(source, value, .environment))
  }

  static func decode(
    _ source: ByteSource, _ range: Range<Int>, into decoded: inout DecodedSecret
  ) throws(FormatError) {
    var quote: UInt8?
    var index = range.lowerBound
    while index < range.upperBound {
      let byte = source[index]
      if byte == quote {
        quote = nil
      } else if quote == nil, byte == UInt8(ascii: "'") || byte == UInt8(ascii: "\"") {
        quote = byte
      } else if quote == nil, byte == UInt8(ascii: "#"), index > range.lowerBound, source[index - 1] <= 0x20 {
        return
      } else if byte == UInt8(ascii: "\\"), quote != UInt8(ascii: "'"), index + 1 < range.upperBound {
        index += 1
        try decoded.append(quote == nil ? source[index] : unescaped(source[index]))
      } else if quote == nil, byte <= 0x20, isBeforeComment(source, index, range) {
        return
      } else {
        try decoded.append(byte)
      }
      index += 1
    }
    guard quote == nil else { throw FormatError("a quote is not closed at byte \(range.lowerBound)") }
  }

  private static func unescaped(_ byte: UInt8) -> UInt8 {
    switch byte {
    case UInt8(ascii: "n"): 0x0A
    case UInt8(ascii: "r"): 0x0D
    case UInt8(ascii: "t"): 0x09
    default: byte
    }
  }

  private static func isBeforeComment(_ source: ByteSource, _ index: Int, _ range: Range<Int>) -> Bool {
    let rest = trimmed(source, index..<range.upperBound)
    return rest.first.map { source[$0] == UInt8(ascii: "#") } ?? true
  }
}
