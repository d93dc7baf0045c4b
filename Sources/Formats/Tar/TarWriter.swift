import Model

/// Writes a tar archive: ustar headers, with pax headers for long names and attributes.
struct TarWriter {
  static let block = 512

  enum Kind: Character {
    case file = "0"
    case folder = "5"
    case records = "x"
  }

  let sink: ByteSink

  func header(
    _ path: String, _ kind: Kind, size: Int, _ modified: Timestamp?, _ attributes: [ItemEntry.Attribute]
  ) throws(FormatError) {
    var records: [UInt8] = []
    if path.utf8.count > 99 || !path.utf8.allSatisfy({ $0 < 0x80 }) {
      records += Self.record("path", Array(path.utf8))
    }
    for attribute in attributes { records += Self.record("SCHILY.xattr.\(attribute.name)", attribute.value) }
    if !records.isEmpty {
      try sink.write(Self.ustar("PaxHeaders/keyhole", .records, size: records.count, seconds: 0))
      try sink.write(records)
      try pad(records.count)
    }
    try sink.write(Self.ustar(path, kind, size: size, seconds: modified?.seconds ?? 0))
  }

  func pad(_ count: Int) throws(FormatError) {
    try sink.write([UInt8](repeating: 0, count: (Self.block - count % Self.block) % Self.block))
  }

  /// The two blocks that end an archive.
  func finish() throws(FormatError) {
    try sink.write([UInt8](repeating: 0, count: 2 * Self.block))
  }

  private static func record(_ name: String, _ value: [UInt8]) -> [UInt8] {
    let rest = Array(" \(name)=".utf8) + value + [0x0A]
    var length = rest.count + 1
    while "\(length)".utf8.count + rest.count != length { length = "\(length)".utf8.count + rest.count }
    return Array("\(length)".utf8) + rest
  }

  private static func ustar(_ path: String, _ kind: Kind, size: Int, seconds: Int64) -> [UInt8] {
    var header = [UInt8](repeating: 0, count: block)
    let put = { (text: String, offset: Int) in
      header.replaceSubrange(offset..<(offset + text.utf8.count), with: Array(text.utf8))
    }
    put(String(decoding: path.utf8.prefix(99).map { $0 < 0x80 ? $0 : UInt8(ascii: "_") }, as: UTF8.self), 0)
    put(kind == .folder ? "0000700" : "0000600", 100)
    put("0000000", 108)
    put("0000000", 116)
    put(octal(size, 11), 124)
    // The range of eleven octal digits: the years 1970 to 2242.
    put(octal(Int(min(max(0, seconds), 0o777_7777_7777)), 11), 136)
    put("        ", 148)
    put(String(kind.rawValue), 156)
    put("ustar", 257)
    put("00", 263)
    put(octal(header.reduce(0) { $0 + Int($1) }, 6) + "\0 ", 148)
    return header
  }

  private static func octal(_ number: Int, _ digits: Int) -> String {
    let text = String(number, radix: 8)
    return String(repeating: "0", count: max(0, digits - text.count)) + text
  }
}
