/// The text of an XML file as UTF-8, whatever it is encoded in.
enum XMLText {
  /// UTF-8 that is well-formed and has no byte order mark.
  ///
  /// UTF-16 with its mark and ISO 8859-1 are what other tools write and Foundation reads, too.
  static func utf8(_ bytes: [UInt8]) throws(PropertyListError) -> [UInt8] {
    if bytes.starts(with: [0xFF, 0xFE]) { return try utf16(bytes) { $0 | $1 << 8 } }
    if bytes.starts(with: [0xFE, 0xFF]) { return try utf16(bytes) { $0 << 8 | $1 } }
    let marked = bytes.starts(with: [0xEF, 0xBB, 0xBF])
    let text = marked ? Array(bytes.dropFirst(3)) : bytes
    switch marked ? "utf-8" : encoding(declaredBy: text) {
    case "", "utf-8", "utf8", "us-ascii", "ascii": return try validated(text)
    case "iso-8859-1", "latin1": return latin1(text)
    default: throw PropertyListError("an encoding that is not read here")
    }
  }

  /// Whether it is UTF-8 as it stands, by its declaration and without a mark.
  static func isPlain(_ bytes: [UInt8]) -> Bool {
    guard bytes.first == UInt8(ascii: "<") else { return false }
    return ["", "utf-8", "utf8"].contains(encoding(declaredBy: bytes))
  }

  private static func validated(_ bytes: [UInt8]) throws(PropertyListError) -> [UInt8] {
    guard (try? UTF8Span(validating: bytes.span)) != nil else { throw PropertyListError("it is not UTF-8") }
    return bytes
  }

  private static func latin1(_ bytes: [UInt8]) -> [UInt8] {
    bytes.flatMap { $0 < 0x80 ? [$0] : [0xC0 | $0 >> 6, 0x80 | $0 & 0x3F] }
  }

  private static func utf16(
    _ bytes: [UInt8], _ unit: (UInt16, UInt16) -> UInt16
  ) throws(PropertyListError) -> [UInt8] {
    guard bytes.count.isMultiple(of: 2) else { throw PropertyListError("half a character at its end") }
    let units = stride(from: 2, to: bytes.count, by: 2).map {
      unit(UInt16(bytes[$0]), UInt16(bytes[$0 + 1]))
    }
    guard let text = String(validating: units, as: UTF16.self) else {
      throw PropertyListError("it is not UTF-16")
    }
    return Array(text.utf8)
  }

  /// The encoding of `<?xml … encoding="…"?>`, in small letters; empty: none.
  private static func encoding(declaredBy bytes: [UInt8]) -> String {
    guard bytes.starts(with: "<?xml".utf8), let end = bytes.firstIndex(of: UInt8(ascii: ">")) else {
      return ""
    }
    let declaration = String(decoding: bytes[..<end], as: UTF8.self)
    guard let name = declaration.split(separator: "encoding", maxSplits: 1).dropFirst().first else {
      return ""
    }
    return name.drop { $0 != "\"" && $0 != "'" }.dropFirst().prefix { $0 != "\"" && $0 != "'" }.lowercased()
  }
}
