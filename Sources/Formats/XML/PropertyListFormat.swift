import Model
import SecretMemory

/// `--format plist`: of one suite what macOS' `defaults export` writes, else a dictionary with `keyhole` = 1,
/// `defaults` and `keychain`.
struct PropertyListFormat {
  let propertyLists: any PropertyListCoding

  // MARK: Writing

  func write(_ contents: ExportContents, to sink: ByteSink) throws(FormatError) {
    if contents.isOneSuite { return try sink.write(try document(dictionary(contents.suites[0].1))) }
    try sink.write(Self.head + "<dict>\n<key>keyhole</key>\n<integer>1</integer>\n<key>defaults</key>\n")
    let suites = contents.suites.map { name, settings in (name, dictionary(settings)) }
    try sink.write(try body(.dictionary(Dictionary(uniqueKeysWithValues: suites))))
    try sink.write("<key>keychain</key>\n<array>\n")
    for item in contents.items {
      guard let secret = try item.secret() else { continue }
      try write(item, secret, to: sink)
    }
    try sink.write("</array>\n</dict>\n</plist>\n")
  }

  private static let head = """
    <?xml version="1.0" encoding="UTF-8"?>
    <!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
    <plist version="1.0">

    """

  private func dictionary(_ settings: [SettingEntry]) -> SettingValue {
    .dictionary(Dictionary(uniqueKeysWithValues: settings.map { ($0.key, $0.value) }))
  }

  private func document(_ value: SettingValue) throws(FormatError) -> [UInt8] {
    do throws(StoreError) { return try propertyLists.xml(value) } catch { throw FormatError(error.message) }
  }

  /// A value as it stands inside a list.
  private func body(_ value: SettingValue) throws(FormatError) -> String {
    let text = String(decoding: try document(value), as: UTF8.self)
    guard let start = text.range(of: "<plist version=\"1.0\">"), let end = text.range(of: "</plist>") else {
      throw FormatError("the property list can't be written")
    }
    return String(text[start.upperBound..<end.lowerBound].drop { $0 == "\n" })
  }

  private func write(
    _ item: ExportItem, _ secret: borrowing SecretBytes, to sink: ByteSink
  ) throws(FormatError) {
    try sink.write("<dict>\n<key>class</key>\n<string>\(item.itemClass.rawValue)</string>\n")
    try sink.write("<key>attributes</key>\n<dict>\n")
    for attribute in item.attributes {
      try sink.write("<key>\(XMLCharacters.escaped(String(attribute.name.dropFirst(5))))</key>\n")
      if let text = String(validating: attribute.value, as: UTF8.self), !text.utf8.contains(0) {
        try sink.write("<string>\(XMLCharacters.escaped(text))</string>\n")
      } else {
        try sink.write("<data>")
        try Base64Text.write(attribute.value.span, to: sink)
        try sink.write("</data>\n")
      }
    }
    try sink.write("</dict>\n<key>value</key>\n<data>")
    try Base64Text.write(secret.span, to: sink)
    try sink.write("</data>\n")
    if let uri = try item.otpauth?() {
      try sink.write("<key>otpauth</key>\n<data>")
      try Base64Text.write(uri.span, to: sink)
      try sink.write("</data>\n")
    }
    try sink.write("</dict>\n")
  }

  // MARK: Reading

  /// `suite`: where the keys of a list go that is no export of Keyhole's.
  func read(_ source: ByteSource, suite: ExactString?) throws(FormatError) -> Contents {
    guard source.starts("bplist") || !Self.isOurs(source) else {
      guard suite == nil else { throw FormatError("what is in it says where it goes; leave out --to") }
      return try readOurs(source)
    }
    guard let value = propertyLists.value(xml: source.bytes(source.whole)),
      case .dictionary(let settings) = value
    else {
      throw FormatError(
        "it is no XML property list with a dictionary at the top; `plutil -convert xml1` makes one of a binary list"
      )
    }
    guard let suite else { throw FormatError("say where its keys go: --to defaults/SUITE") }
    var contents = Contents()
    contents.settings = settings.map { SettingEntry(suite: suite, key: $0, value: $1) }
    return contents
  }

  /// Whether the first key is `keyhole`.
  private static func isOurs(_ source: ByteSource) -> Bool {
    var scanner = XMLScanner(source)
    guard (try? scanner.child()) == "plist", (try? scanner.child()) == "dict",
      (try? scanner.child()) == "key",
      let key = try? scanner.content().text()
    else { return false }
    return key == "keyhole"
  }

  private func readOurs(_ source: ByteSource) throws(FormatError) -> Contents {
    var contents = Contents()
    var scanner = XMLScanner(source)
    guard try scanner.child() == "plist", try scanner.child() == "dict" else {
      throw scanner.error("a property list was expected")
    }
    try members(&scanner) { (key, element, scanner) throws(FormatError) in
      switch (key, element) {
      case ("keyhole", "integer"):
        guard try scanner.content().text() == "1" else {
          throw FormatError("a newer Keyhole made this export")
        }
      case ("defaults", "dict"): contents.settings = try readSuites(source, scanner.skipElement())
      case ("keychain", "array"):
        while let name = try scanner.child() {
          guard name == "dict" else { throw scanner.error("an item is no dictionary") }
          contents.items.append(try readItem(&scanner))
        }
      default: throw FormatError("the key `\(key)` is unknown")
      }
    }
    guard try scanner.child() == nil, try scanner.isAtEnd() else {
      throw scanner.error("something follows the end")
    }
    return contents
  }

  private func members(
    _ scanner: inout XMLScanner,
    _ body: (String, String, inout XMLScanner) throws(FormatError) -> Void
  ) throws(FormatError) {
    var keys: Set<String> = []
    while let name = try scanner.child() {
      guard name == "key" else { throw scanner.error("a key was expected") }
      let key = try scanner.content().text()
      guard keys.insert(key).inserted else { throw scanner.error("the key `\(key)` is there twice") }
      guard let element = try scanner.child() else { throw scanner.error("a value is missing") }
      try body(key, element, &scanner)
    }
  }

  private func readSuites(_ source: ByteSource, _ range: Range<Int>) throws(FormatError) -> [SettingEntry] {
    let text = Array((Self.head + "<dict>").utf8) + source.bytes(range) + Array("</dict></plist>".utf8)
    guard let value = propertyLists.value(xml: text), case .dictionary(let suites) = value else {
      throw FormatError("its settings are no property list")
    }
    var settings: [SettingEntry] = []
    for (suite, value) in suites {
      guard case .dictionary(let keys) = value else { throw FormatError("\(suite) is no dictionary") }
      settings += keys.map { SettingEntry(suite: suite, key: $0, value: $1) }
    }
    return settings
  }

  private func readItem(_ scanner: inout XMLScanner) throws(FormatError) -> ItemEntry {
    var itemClass: ItemClass?
    var attributes: [ItemEntry.Attribute] = []
    var (secret, otpauth): (SecretSlice?, SecretSlice?)
    try members(&scanner) { (key, element, scanner) throws(FormatError) in
      switch (key, element) {
      case ("class", "string"): itemClass = ItemClass(rawValue: try scanner.content().text())
      case ("value", "data"):
        let content = try scanner.content()
        secret = SecretSlice(content.source, content.range, .base64)
      case ("otpauth", "data"):
        let content = try scanner.content()
        otpauth = SecretSlice(content.source, content.range, .base64)
      case ("attributes", "dict"):
        try members(&scanner) { (name, element, scanner) throws(FormatError) in
          guard element == "data" || element == "string" else {
            throw scanner.error("an attribute is neither a string nor data")
          }
          let content = try scanner.content()
          let value = element == "data" ? SecretSlice(content.source, content.range, .base64) : content
          let bytes = try value.bytes()
          attributes.append(
            ItemEntry.Attribute("user." + name, bytes.unprotected))
        }
      default: throw FormatError("an item has the unknown key `\(key)`")
      }
    }
    guard let itemClass, let secret else { throw scanner.error("an item has no `class`, or no `value`,") }
    var entry = try ItemEntry(itemClass, attributes, secret)
    entry.otpauth = otpauth
    return entry
  }
}

extension String {
  /// Foundation's, of which nothing else is needed here.
  fileprivate func range(of text: String) -> Range<String.Index>? {
    var start = startIndex
    while start < endIndex {
      if self[start...].hasPrefix(text) { return start..<index(start, offsetBy: text.count) }
      start = index(after: start)
    }
    return nil
  }
}
