import Model
import SecretMemory

/// `--format tar`: the tree as files, with attributes as `tar --xattrs` keeps them (POSIX.1-2001 pax headers,
/// `SCHILY.xattr.user.…`). Unpacked into a mount, it is the same tree.
struct TapeFormat {
  let codec: SettingCodec
  private static let block = 512

  // MARK: Writing

  func write(_ contents: ExportContents, to sink: Sink) throws(TransferError) {
    for (suite, settings) in contents.suites {
      for setting in settings {
        let path = "defaults/\(PathText.encode(suite))/\(PathText.encode(setting.key))"
        let content = try codec.exported(setting.value)
        let type = ItemEntry.Attribute("user.keyhole.type", Array(setting.value.type.rawValue.utf8))
        try header(path, "0", size: content.count, setting.modified, [type], to: sink)
        try sink.write(content)
        try pad(content.count, sink)
      }
    }
    for item in contents.items {
      try header(item.path + "/", "5", size: 0, item.modified, item.attributes, to: sink)
      let secret = try item.secret()
      try header(item.path + "/value", "0", size: secret.count, item.modified, [], to: sink)
      try unsafe secret.withUnsafeBytes { bytes throws(TransferError) in try unsafe sink.write(bytes) }
      try pad(secret.count, sink)
    }
    try sink.write([UInt8](repeating: 0, count: 2 * Self.block))
  }

  private func header(
    _ path: String, _ kind: String, size: Int, _ modified: Timestamp?, _ attributes: [ItemEntry.Attribute],
    to sink: Sink
  ) throws(TransferError) {
    var records: [UInt8] = []
    if path.utf8.count > 99 || !path.utf8.allSatisfy({ $0 < 0x80 }) {
      records += Self.record("path", Array(path.utf8))
    }
    for attribute in attributes { records += Self.record("SCHILY.xattr.\(attribute.name)", attribute.value) }
    if !records.isEmpty {
      try sink.write(Self.ustar("PaxHeaders/keyhole", "x", size: records.count, seconds: 0))
      try sink.write(records)
      try pad(records.count, sink)
    }
    try sink.write(Self.ustar(path, kind, size: size, seconds: max(0, modified?.seconds ?? 0)))
  }

  private static func record(_ name: String, _ value: [UInt8]) -> [UInt8] {
    let rest = Array(" \(name)=".utf8) + value + [0x0A]
    var length = rest.count + 1
    while "\(length)".utf8.count + rest.count != length { length = "\(length)".utf8.count + rest.count }
    return Array("\(length)".utf8) + rest
  }

  private static func ustar(_ path: String, _ kind: String, size: Int, seconds: Int64) -> [UInt8] {
    var header = [UInt8](repeating: 0, count: block)
    let put = { (text: String, offset: Int) in
      header.replaceSubrange(offset..<(offset + text.utf8.count), with: Array(text.utf8))
    }
    put(String(decoding: path.utf8.prefix(99).map { $0 < 0x80 ? $0 : UInt8(ascii: "_") }, as: UTF8.self), 0)
    put(kind == "5" ? "0000700" : "0000600", 100)
    put("0000000", 108)
    put("0000000", 116)
    put(octal(size, 11), 124)
    put(octal(Int(seconds), 11), 136)
    put("        ", 148)
    put(kind, 156)
    put("ustar", 257)
    put("00", 263)
    put(octal(header.reduce(0) { $0 + Int($1) }, 6) + "\0 ", 148)
    return header
  }

  private static func octal(_ number: Int, _ digits: Int) -> String {
    let text = String(number, radix: 8)
    return String(repeating: "0", count: max(0, digits - text.count)) + text
  }

  private func pad(_ count: Int, _ sink: Sink) throws(TransferError) {
    try sink.write([UInt8](repeating: 0, count: (Self.block - count % Self.block) % Self.block))
  }

  // MARK: Reading

  private struct Member {
    var path = ""
    var attributes: [ItemEntry.Attribute] = []
    var content = 0..<0
  }

  func read(_ source: Source) throws(TransferError) -> Contents {
    var contents = Contents()
    var folders: [String: [ItemEntry.Attribute]] = [:]
    for member in try members(source) {
      let parts = member.path.split(separator: "/").filter { $0 != "." }.map(String.init)
      let path = parts.joined(separator: "/")
      switch (parts.first, parts.last, parts.count) {
      case ("defaults", _, 3): contents.settings.append(try setting(member, parts, source))
      case ("keychain", "value", 4...5):
        let folder = parts.dropLast().joined(separator: "/")
        let attributes = folders[folder] ?? member.attributes
        contents.items.append(try item(parts.dropLast(), attributes, Passage(source, member.content)))
      case ("keychain", _, _), ("defaults", _, 1...2), (nil, _, _): folders[path] = member.attributes
      default: throw TransferError("\(path) has no place in the tree")
      }
    }
    return contents
  }

  private func setting(_ member: Member, _ parts: [String], _ source: Source) throws(TransferError)
    -> SettingEntry
  {
    let content = source.bytes(member.content)
    let type = member.attributes.first { $0.name == "user.keyhole.type" }
    let known = type.flatMap { SettingType(rawValue: String(decoding: $0.value, as: UTF8.self)) }
    do throws(StoreError) {
      let value = try known.map { type throws(StoreError) in try codec.value(of: content, as: type) }
      return SettingEntry(
        suite: try PathText.decode(parts[1]), key: try PathText.decode(parts[2]),
        value: value ?? codec.inferred(from: content))
    } catch {
      throw TransferError("\(member.path): \(error.message)")
    }
  }

  /// The attributes say what it is; where there are none, its folders do.
  private func item(
    _ parts: ArraySlice<String>, _ attributes: [ItemEntry.Attribute], _ secret: Passage
  ) throws(TransferError) -> ItemEntry {
    guard let itemClass = ItemClass(rawValue: parts[1]) else {
      throw TransferError("\(parts[1]) is no class of items")
    }
    if let item = try? ItemEntry(itemClass, attributes, secret) { return item }
    guard let identity = PathText.identity(itemClass, Array(parts.dropFirst(2))) else {
      throw TransferError("\(parts.joined(separator: "/")) names no item")
    }
    return ItemEntry(identity, attributes.filter { !ItemIdentity.attributeNames.contains($0.name) }, secret)
  }

  private func members(_ source: Source) throws(TransferError) -> [Member] {
    var members: [Member] = []
    var next = Member()
    var position = 0
    while position + Self.block <= source.count, source[position] != 0 || source[position + 156] != 0 {
      guard let size = number(source, position + 124, 12), checksumHolds(source, position) else {
        throw TransferError("the archive is damaged at byte \(position)")
      }
      let content = (position + Self.block)..<(position + Self.block + size)
      guard content.upperBound <= source.count else { throw TransferError("the archive is cut off") }
      let kind = source[position + 156]
      let name = name(source, position)
      position = content.upperBound + (Self.block - size % Self.block) % Self.block
      switch kind {
      case UInt8(ascii: "x"): try readRecords(source, content, &next)
      case UInt8(ascii: "L"): next.path = source.text(content.lowerBound..<(content.upperBound - 1)) ?? ""
      case UInt8(ascii: "g"): break
      case 0, UInt8(ascii: "0"), UInt8(ascii: "5"):
        if next.path.isEmpty { next.path = name }
        next.content = content
        members.append(next)
        next = Member()
      default: throw TransferError("\(name) is neither a file nor a folder")
      }
    }
    return members
  }

  private func name(_ source: Source, _ header: Int) -> String {
    let field = { (offset: Int, length: Int) -> String in
      let range = (header + offset)..<(header + offset + length)
      let end = range.first { source[$0] == 0 } ?? range.upperBound
      return source.text(range.lowerBound..<end) ?? ""
    }
    let prefix = source.starts("ustar\0", at: header + 257) ? field(345, 155) : ""
    return (prefix.isEmpty ? "" : prefix + "/") + field(0, 100)
  }

  private func number(_ source: Source, _ start: Int, _ length: Int) -> Int? {
    let digits = (start..<(start + length)).map { source[$0] }.filter { $0 != 0 && $0 != 0x20 }
    return digits.isEmpty ? 0 : Int(String(decoding: digits, as: UTF8.self), radix: 8)
  }

  private func checksumHolds(_ source: Source, _ header: Int) -> Bool {
    let sum = (0..<Self.block).reduce(0) { $0 + Int((148..<156).contains($1) ? 0x20 : source[header + $1]) }
    return number(source, header + 148, 8) == sum
  }

  private func readRecords(_ source: Source, _ range: Range<Int>, _ member: inout Member)
    throws(TransferError)
  {
    var position = range.lowerBound
    while position < range.upperBound {
      guard let blank = (position..<range.upperBound).first(where: { source[$0] == 0x20 }),
        let text = source.text(position..<blank), let length = Int(text), length > blank - position + 1,
        position + length <= range.upperBound,
        let equals = (blank..<(position + length)).first(where: { source[$0] == UInt8(ascii: "=") }),
        let name = source.text((blank + 1)..<equals)
      else { throw TransferError("the archive is damaged at byte \(position)") }
      let value = (equals + 1)..<(position + length - 1)
      if name == "path" { member.path = source.text(value) ?? "" }
      if name.hasPrefix("SCHILY.xattr.user.") {
        member.attributes.append(ItemEntry.Attribute(String(name.dropFirst(13)), source.bytes(value)))
      }
      position += length
    }
  }
}
