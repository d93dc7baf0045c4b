import Model
import SecretMemory

/// `--format json`: one object, `{"keyhole": 1, "defaults": {SUITE: {KEY: …}}, "keychain": […]}`, and `"secretService"` where
/// programs have made collections.
struct JSONFormat {
  let codec: SettingCodec

  // MARK: Writing

  func write(_ contents: ExportContents, to sink: ByteSink) throws(FormatError) {
    try sink.write("{\n  \"keyhole\": 1,\n  \"defaults\": {")
    var separator = "\n"
    for (suite, settings) in contents.suites {
      try sink.write(separator + "    \"")
      try JSONText.write(suite.string, to: sink)
      try sink.write("\": {")
      try write(settings, to: sink)
      try sink.write("}")
      separator = ",\n"
    }
    try sink.write(contents.suites.isEmpty ? "},\n  \"keychain\": [" : "\n  },\n  \"keychain\": [")
    separator = "\n"
    for item in contents.items {
      guard let secret = try item.secret() else { continue }
      try sink.write(separator)
      try write(item, secret, to: sink)
      try writeOtpauth(item, to: sink)
      try sink.write("}")
      separator = ",\n"
    }
    try sink.write(separator == "\n" ? "]" : "\n  ]")
    if !contents.collections.isEmpty {
      try sink.write(",\n  \"secretService\": ")
      try contents.collections.write(to: sink)
    }
    try sink.write("\n}\n")
  }

  private func write(_ settings: [SettingEntry], to sink: ByteSink) throws(FormatError) {
    var separator = "\n"
    for setting in settings {
      try sink.write(separator + "      \"")
      try JSONText.write(setting.key.string, to: sink)
      try sink.write("\": {\"type\": \"\(setting.value.type.rawValue)\", ")
      try write(setting.value, to: sink)
      try sink.write("}")
      separator = ",\n"
    }
    if !settings.isEmpty { try sink.write("\n    ") }
  }

  /// Numbers, booleans and what JSON can say inside stand as themselves, everything else as the file's text.
  private func write(_ value: SettingValue, to sink: ByteSink) throws(FormatError) {
    if case .data(let bytes) = value { return try writeBase64(bytes, to: sink) }
    let content = try codec.exported(value)
    if isPlainJSON(value, content) {
      try sink.write("\"value\": ")
      return try sink.write(Array(content.dropLast()))
    }
    try sink.write("\"value\": \"")
    let text = content.last == 0x0A ? Array(content.dropLast()) : content
    try JSONText.write(text.span, to: sink)
    try sink.write("\"")
  }

  private func isPlainJSON(_ value: SettingValue, _ content: [UInt8]) -> Bool {
    switch value {
    case .integer, .bool: true
    case .real(let number): number.isFinite
    case .array, .dictionary: content.first != UInt8(ascii: "<")
    default: false
    }
  }

  private func writeBase64(_ bytes: [UInt8], to sink: ByteSink) throws(FormatError) {
    try sink.write("\"base64\": \"")
    try Base64Text.write(bytes.span, to: sink)
    try sink.write("\"")
  }

  private func write(
    _ item: ExportItem, _ secret: borrowing SecretBytes, to sink: ByteSink
  ) throws(FormatError) {
    try sink.write("    {\"class\": \"\(item.itemClass.rawValue)\", \"attributes\": {")
    var separator = ""
    for attribute in item.attributes {
      try sink.write(separator + "\"")
      try JSONText.write(String(attribute.name.dropFirst(5)), to: sink)
      try sink.write("\": ")
      if let text = String(validating: attribute.value, as: UTF8.self), !text.utf8.contains(0) {
        try sink.write("\"")
        try JSONText.write(text, to: sink)
        try sink.write("\"")
      } else {
        try sink.write("{")
        try writeBase64(attribute.value, to: sink)
        try sink.write("}")
      }
      separator = ", "
    }
    try sink.write("}, ")
    let isText = isText(secret.span)
    try sink.write(isText ? "\"value\": \"" : "\"base64\": \"")
    if isText {
      try JSONText.write(secret.span, to: sink)
    } else {
      try Base64Text.write(secret.span, to: sink)
    }
    try sink.write("\"")
  }

  /// It is text always.
  private func writeOtpauth(_ item: ExportItem, to sink: ByteSink) throws(FormatError) {
    guard let uri = try item.otpauth?() else { return }
    try sink.write(", \"otpauth\": \"")
    try JSONText.write(uri.span, to: sink)
    try sink.write("\"")
  }

  /// Whether the bytes are UTF-8 without NUL, found without a copy.
  private func isText(_ bytes: Span<UInt8>) -> Bool {
    var check = UTF8Check()
    for index in bytes.indices {
      guard bytes[index] != 0, check.append(bytes[index]) else { return false }
    }
    return check.isComplete
  }

  // MARK: Reading

  func read(_ source: ByteSource) throws(FormatError) -> Contents {
    var contents = Contents()
    var scanner = JSONScanner(source)
    var isOurs = false
    try scanner.members { (name, scanner) throws(FormatError) in
      switch name {
      case "keyhole": isOurs = source.text(try scanner.value()) == "1"
      case "defaults": try readSuites(&scanner, &contents)
      case "keychain":
        try scanner.elements { (scanner) throws(FormatError) in
          contents.items.append(try readItem(&scanner))
        }
      case "secretService": contents.collections = try ServiceCollections(&scanner)
      default: throw FormatError("the member `\(name)` is unknown")
      }
    }
    try scanner.end()
    guard isOurs else { throw FormatError("this is no export of Keyhole's: `\"keyhole\": 1` is missing") }
    return contents
  }

  private func readSuites(_ scanner: inout JSONScanner, _ contents: inout Contents) throws(FormatError) {
    try scanner.members { (suite, scanner) throws(FormatError) in
      try scanner.members { (key, scanner) throws(FormatError) in
        let value = try readSetting(&scanner, "\(suite)/\(key)")
        contents.settings.append(SettingEntry(suite: ExactString(suite), key: ExactString(key), value: value))
      }
    }
  }

  private func readSetting(_ scanner: inout JSONScanner, _ name: String) throws(FormatError) -> SettingValue {
    var type: SettingType?
    var content: [UInt8]?
    let once = { (present: Any?) throws(FormatError) in
      guard present == nil else {
        throw FormatError("\(name) has `value` and `base64`; only one can be meant")
      }
    }
    try scanner.members { (member, scanner) throws(FormatError) in
      switch member {
      case "type": type = SettingType(rawValue: try scanner.string().text())
      case "base64":
        try once(content)
        content = try readBase64(&scanner)
      case "value":
        try once(content)
        content = try readValue(&scanner)
      default: throw FormatError("\(name) has the unknown member `\(member)`")
      }
    }
    guard let type, let content else { throw FormatError("\(name) has no `type`, or no `value`") }
    do throws(StoreError) { return try codec.value(of: content, as: type) } catch {
      throw FormatError("\(name): \(error.message)")
    }
  }

  private func readValue(_ scanner: inout JSONScanner) throws(FormatError) -> [UInt8] {
    guard try scanner.next() == UInt8(ascii: "\"") else { return scanner.source.bytes(try scanner.value()) }
    return Array(try scanner.string().text().utf8) + [0x0A]
  }

  private func readBase64(_ scanner: inout JSONScanner) throws(FormatError) -> [UInt8] {
    let string = try scanner.string()
    let bytes = try SecretSlice(string.source, string.range, .base64).bytes()
    return bytes.unprotected
  }

  private func readItem(_ scanner: inout JSONScanner) throws(FormatError) -> ItemEntry {
    var itemClass: ItemClass?
    var attributes: [ItemEntry.Attribute] = []
    var (secret, otpauth): (SecretSlice?, SecretSlice?)
    try scanner.members { (member, scanner) throws(FormatError) in
      switch member {
      case "class": itemClass = ItemClass(rawValue: try scanner.string().text())
      case "attributes":
        try scanner.members { (name, scanner) throws(FormatError) in
          attributes.append(ItemEntry.Attribute("user." + name, try readAttribute(&scanner)))
        }
      case "value", "base64":
        guard secret == nil else { throw scanner.error("an item has `value` and `base64`") }
        let string = try scanner.string()
        secret = member == "value" ? string : SecretSlice(string.source, string.range, .base64)
      case "otpauth": otpauth = try scanner.string()
      default: throw FormatError("an item has the unknown member `\(member)`")
      }
    }
    guard let itemClass, let secret else { throw scanner.error("an item has no `class`, or no `value`,") }
    var entry = try ItemEntry(itemClass, attributes, secret)
    entry.otpauth = otpauth
    return entry
  }

  private func readAttribute(_ scanner: inout JSONScanner) throws(FormatError) -> [UInt8] {
    guard try scanner.next() == UInt8(ascii: "{") else { return Array(try scanner.string().text().utf8) }
    var bytes: [UInt8]?
    try scanner.members { (name, scanner) throws(FormatError) in
      guard name == "base64" else { throw FormatError("an attribute has the unknown member `\(name)`") }
      bytes = try readBase64(&scanner)
    }
    guard let bytes else { throw scanner.error("an attribute has no `base64`") }
    return bytes
  }
}
