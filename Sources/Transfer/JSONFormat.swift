import Model
import SecretMemory

/// `--format json`: one object, `{"keyhole": 1, "defaults": {SUITE: {KEY: …}}, "keychain": […]}`.
struct JSONFormat {
  let codec: SettingCodec

  // MARK: Writing

  func write(_ contents: ExportContents, to sink: Sink) throws(TransferError) {
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
      try sink.write(separator)
      try write(item, to: sink)
      separator = ",\n"
    }
    try sink.write(contents.items.isEmpty ? "]\n}\n" : "\n  ]\n}\n")
  }

  private func write(_ settings: [SettingEntry], to sink: Sink) throws(TransferError) {
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
  private func write(_ value: SettingValue, to sink: Sink) throws(TransferError) {
    if case .data(let bytes) = value { return try writeBase64(bytes, to: sink) }
    let content = try codec.exported(value)
    if isPlainJSON(value, content) {
      try sink.write("\"value\": ")
      return try sink.write(Array(content.dropLast()))
    }
    try sink.write("\"value\": \"")
    let text = content.last == 0x0A ? Array(content.dropLast()) : content
    try JSONText.write(text, to: sink)
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

  private func writeBase64(_ bytes: [UInt8], to sink: Sink) throws(TransferError) {
    try sink.write("\"base64\": \"")
    try Base64Text.write(bytes, to: sink)
    try sink.write("\"")
  }

  private func write(_ item: ExportItem, to sink: Sink) throws(TransferError) {
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
    let secret = try item.secret()
    try unsafe secret.withUnsafeBytes { bytes throws(TransferError) in
      let isText = unsafe isText(bytes)
      try sink.write(isText ? "\"value\": \"" : "\"base64\": \"")
      if isText {
        try unsafe JSONText.write(bytes, to: sink)
      } else {
        try unsafe Base64Text.write(bytes, to: sink)
      }
    }
    try sink.write("\"}")
  }

  /// Whether the bytes are UTF-8 without NUL, found without a copy.
  private func isText(_ bytes: UnsafeRawBufferPointer) -> Bool {
    var decoder = UTF8()
    var iterator = unsafe bytes.makeIterator()
    while true {
      switch unsafe decoder.decode(&iterator) {
      case .scalarValue(let scalar) where scalar != "\0": continue
      case .emptyInput: return true
      default: return false
      }
    }
  }

  // MARK: Reading

  func read(_ source: Source) throws(TransferError) -> Contents {
    var contents = Contents()
    var scanner = JSONScanner(source)
    var isOurs = false
    try scanner.members { (name, scanner) throws(TransferError) in
      switch name {
      case "keyhole": isOurs = source.text(try scanner.value()) == "1"
      case "defaults": try readSuites(&scanner, &contents)
      case "keychain":
        try scanner.elements { (scanner) throws(TransferError) in
          contents.items.append(try readItem(&scanner))
        }
      default: throw TransferError("the member `\(name)` is unknown")
      }
    }
    try scanner.end()
    guard isOurs else { throw TransferError("this is no export of Keyhole's: `\"keyhole\": 1` is missing") }
    return contents
  }

  private func readSuites(_ scanner: inout JSONScanner, _ contents: inout Contents) throws(TransferError) {
    try scanner.members { (suite, scanner) throws(TransferError) in
      try scanner.members { (key, scanner) throws(TransferError) in
        let value = try readSetting(&scanner, "\(suite)/\(key)")
        contents.settings.append(SettingEntry(suite: ExactString(suite), key: ExactString(key), value: value))
      }
    }
  }

  private func readSetting(_ scanner: inout JSONScanner, _ name: String) throws(TransferError) -> SettingValue
  {
    var type: SettingType?
    var content: [UInt8]?
    try scanner.members { (member, scanner) throws(TransferError) in
      switch member {
      case "type": type = SettingType(rawValue: try scanner.string().text())
      case "base64": content = try readBase64(&scanner)
      case "value" where try scanner.next() == UInt8(ascii: "\""):
        content = Array(try scanner.string().text().utf8) + [0x0A]
      case "value": content = scanner.source.bytes(try scanner.value())
      default: throw TransferError("\(name) has the unknown member `\(member)`")
      }
    }
    guard let type, let content else { throw TransferError("\(name) has no `type`, or no `value`") }
    do throws(StoreError) { return try codec.value(of: content, as: type) } catch {
      throw TransferError("\(name): \(error.message)")
    }
  }

  private func readBase64(_ scanner: inout JSONScanner) throws(TransferError) -> [UInt8] {
    let string = try scanner.string()
    let bytes = try Passage(string.source, string.range, .base64).bytes()
    return unsafe bytes.withUnsafeBytes { unsafe Array($0) }
  }

  private func readItem(_ scanner: inout JSONScanner) throws(TransferError) -> ItemEntry {
    var itemClass: ItemClass?
    var attributes: [ItemEntry.Attribute] = []
    var secret: Passage?
    try scanner.members { (member, scanner) throws(TransferError) in
      switch member {
      case "class": itemClass = ItemClass(rawValue: try scanner.string().text())
      case "attributes":
        try scanner.members { (name, scanner) throws(TransferError) in
          attributes.append(ItemEntry.Attribute("user." + name, try readAttribute(&scanner)))
        }
      case "value": secret = try scanner.string()
      case "base64":
        let string = try scanner.string()
        secret = Passage(string.source, string.range, .base64)
      default: throw TransferError("an item has the unknown member `\(member)`")
      }
    }
    guard let itemClass, let secret else { throw scanner.error("an item has no `class`, or no `value`,") }
    return try ItemEntry(itemClass, attributes, secret)
  }

  private func readAttribute(_ scanner: inout JSONScanner) throws(TransferError) -> [UInt8] {
    guard try scanner.next() == UInt8(ascii: "{") else { return Array(try scanner.string().text().utf8) }
    var bytes: [UInt8] = []
    try scanner.members { (_, scanner) throws(TransferError) in bytes = try readBase64(&scanner) }
    return bytes
  }
}

extension ItemEntry {
  /// An item as its attributes name it.
  init(_ itemClass: ItemClass, _ attributes: [Attribute], _ secret: Passage) throws(TransferError) {
    var texts: [String: String] = [:]
    for attribute in attributes {
      guard texts.updateValue(String(decoding: attribute.value, as: UTF8.self), forKey: attribute.name) == nil
      else {
        throw TransferError("an item has the attribute \(attribute.name) twice")
      }
    }
    guard let identity = ItemIdentity(itemClass, texts) else {
      throw TransferError("an item of \(itemClass.rawValue) lacks the attributes that name it")
    }
    let isIdentity = itemClass == .other ? ["user.keyhole.label"] : ItemIdentity.attributeNames
    self.init(identity, attributes.filter { !isIdentity.contains($0.name) }, secret)
  }
}

extension SettingCodec {
  func exported(_ value: SettingValue) throws(TransferError) -> [UInt8] {
    do throws(StoreError) { return try content(of: value) } catch { throw TransferError(error.message) }
  }
}
