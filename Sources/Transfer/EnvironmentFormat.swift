import Model
import SecretMemory

/// `--format env`: lines `NAME='value'`, as a shell's `.` and most readers of `.env` files take them.
///
/// A setting's name is its key, an item's the service and the account, with `_` for what a variable's name can't
/// have. Two that come out the same are an error, and so is what no variable can hold.
struct EnvironmentFormat {
  let codec: SettingCodec

  // MARK: Writing

  func write(_ contents: ExportContents, to sink: Sink) throws(TransferError) {
    var taken: [String: String] = [:]
    for (suite, settings) in contents.suites {
      for setting in settings {
        try claim(Self.name([setting.key.string]), for: "defaults/\(suite)/\(setting.key)", &taken, sink)
        try write(setting, to: sink)
      }
    }
    for item in contents.items {
      try claim(Self.name(Self.names(of: item)), for: item.path, &taken, sink)
      let secret = try item.secret()
      try unsafe secret.withUnsafeBytes { bytes throws(TransferError) in
        guard unsafe !bytes.contains(0) else {
          throw TransferError("\(item.path) has a NUL, which no variable can hold")
        }
        try unsafe write(bytes, to: sink)
      }
    }
  }

  private func claim(
    _ name: String, for path: String, _ taken: inout [String: String], _ sink: Sink
  ) throws(TransferError) {
    if let other = taken.updateValue(path, forKey: name) {
      throw TransferError("\(other) and \(path) would both be \(name)")
    }
    try sink.write(name + "=")
  }

  private func write(_ setting: SettingEntry, to sink: Sink) throws(TransferError) {
    if case .data = setting.value {
      throw TransferError("defaults/\(setting.suite)/\(setting.key) is data, which no variable can hold")
    }
    let content = try codec.exported(setting.value).dropLast()
    try write(Array(content), to: sink)
  }

  /// Between single quotes everything stands for itself but the quote.
  private func write(_ bytes: some Sequence<UInt8>, to sink: Sink) throws(TransferError) {
    try sink.write("'")
    for byte in bytes {
      if byte == UInt8(ascii: "'") { try sink.write("'\\''") } else { try sink.write(byte) }
    }
    try sink.write("'\n")
  }

  private static func names(of item: ExportItem) -> [String] {
    let names = item.itemClass == .other ? ["keyhole.label"] : ["service", "server", "account"]
    return names.compactMap { name in
      let value = item.attributes.first { $0.name == "user." + name }?.value
      return value.map { String(decoding: $0, as: UTF8.self) }
    }.filter { !$0.isEmpty }
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

  func read(_ source: Source, to target: Target) throws(TransferError) -> Contents {
    var contents = Contents()
    for variable in try EnvironmentText.variables(in: source) {
      switch target {
      case .suite(let suite):
        let bytes = try variable.value.bytes()
        let value = unsafe bytes.withUnsafeBytes { unsafe codec.inferred(from: Array($0)) }
        contents.settings.append(SettingEntry(suite: suite, key: ExactString(variable.name), value: value))
      case .service(let service):
        let identity = ItemIdentity.generic(service: service, account: ExactString(variable.name))
        contents.items.append(ItemEntry(identity, [], variable.value))
      }
    }
    return contents
  }
}

/// The text of environment files: `NAME=value`, `export NAME="…"`, quotes as in a shell, comments.
enum EnvironmentText {
  static func isNamePart(_ scalar: Unicode.Scalar) -> Bool {
    scalar == "_" || scalar.isASCII && (scalar.properties.isAlphabetic || ("0"..."9").contains(scalar))
  }

  static func variables(in source: Source) throws(TransferError) -> [(name: String, value: Passage)] {
    var variables: [(String, Passage)] = []
    var position = 0
    var line = 1
    while position < source.count {
      defer { line += 1 }
      let end = endOfValue(source, position)
      let range = trimmed(source, position..<end)
      position = end + 1
      guard !range.isEmpty, source[range.lowerBound] != UInt8(ascii: "#") else { continue }
      guard let variable = variable(source, range) else {
        throw TransferError("variable \(line) is not of the form NAME=value")
      }
      variables.append(variable)
    }
    return variables
  }

  /// The line feed that ends a line, which quotes may carry across several.
  private static func endOfValue(_ source: Source, _ start: Int) -> Int {
    let isComment =
      trimmed(source, start..<source.count).first.map { source[$0] == UInt8(ascii: "#") } ?? false
    var quote: UInt8?
    var index = start
    while index < source.count {
      let byte = source[index]
      if byte == 0x0A, quote == nil || isComment { return index }
      if byte == UInt8(ascii: "\\"), quote != UInt8(ascii: "'") {
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

  private static func trimmed(_ source: Source, _ range: Range<Int>) -> Range<Int> {
    var range = range
    while let first = range.first, [0x20, 0x09, 0x0D, 0x0A].contains(source[first]) {
      range = (first + 1)..<range.upperBound
    }
    while let last = range.last, [0x20, 0x09, 0x0D].contains(source[last]) { range = range.lowerBound..<last }
    return range
  }

  private static func variable(_ source: Source, _ range: Range<Int>) -> (String, Passage)? {
    let start = source.starts("export ", at: range.lowerBound) ? range.lowerBound + 7 : range.lowerBound
    guard let equals = range.first(where: { source[$0] == UInt8(ascii: "=") }), equals > start,
      let name = source.text(trimmed(source, start..<equals)),
      name.unicodeScalars.allSatisfy({ isNamePart($0) || $0 == "." || $0 == "-" }),
      !(name.first?.isNumber ?? true)
    else { return nil }
    let value = trimmed(source, (equals + 1)..<range.upperBound)
    return (name, Passage(source, value, .environment))
  }

  static func decode(
    _ source: Source, _ range: Range<Int>, into decoded: inout Decoded
  ) throws(TransferError) {
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
    guard quote == nil else { throw TransferError("a quote is not closed") }
  }

  private static func unescaped(_ byte: UInt8) -> UInt8 {
    switch byte {
    case UInt8(ascii: "n"): 0x0A
    case UInt8(ascii: "r"): 0x0D
    case UInt8(ascii: "t"): 0x09
    default: byte
    }
  }

  private static func isBeforeComment(_ source: Source, _ index: Int, _ range: Range<Int>) -> Bool {
    let rest = trimmed(source, index..<range.upperBound)
    return rest.first.map { source[$0] == UInt8(ascii: "#") } ?? true
  }
}
