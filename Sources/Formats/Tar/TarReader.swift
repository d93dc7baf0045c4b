/// Reads the members of a tar archive: ustar, pax and GNU long names.
struct TarReader {
  private static let block = TarWriter.block

  enum Kind {
    case file
    case folder
  }

  struct Member {
    var path = ""
    var kind = Kind.file
    /// Extended attributes below `user.`, by their full names.
    var attributes: [ItemEntry.Attribute] = []
    var content = 0..<0
  }

  let source: ByteSource

  /// - Throws: `FormatError` for what is damaged or cut off, which the two zero blocks at the end show, and for links
  ///   and devices.
  func members() throws(FormatError) -> [Member] {
    var members: [Member] = []
    var next = Member()
    var position = 0
    while !isZero(position) {
      let (kind, content) = try header(position)
      let name = name(position)
      // The padding of the last member may be missing only if the archive is cut off.
      position = content.upperBound + (Self.block - content.count % Self.block) % Self.block
      switch kind {
      case UInt8(ascii: "x"): try readRecords(content, &next)
      case UInt8(ascii: "L"): next.path = try longName(content)
      case UInt8(ascii: "g"): break
      case 0, UInt8(ascii: "0"), UInt8(ascii: "5"):
        if next.path.isEmpty { next.path = name }
        next.kind = kind == UInt8(ascii: "5") || name.hasSuffix("/") ? .folder : .file
        next.content = content
        members.append(next)
        next = Member()
      default: throw FormatError("\(next.path.isEmpty ? name : next.path) is neither a file nor a folder")
      }
    }
    guard isZero(position + Self.block) else { throw FormatError("the archive is cut off") }
    try source.check()
    return members
  }

  private func isZero(_ position: Int) -> Bool {
    guard source.count - position >= Self.block else { return false }
    return (position..<position + Self.block).allSatisfy { source[$0] == 0 }
  }

  private func header(_ position: Int) throws(FormatError) -> (kind: UInt8, content: Range<Int>) {
    guard source.count - position >= Self.block else { throw FormatError("the archive is cut off") }
    guard let size = number(position + 124, 12), checksumHolds(position) else { throw damage(position) }
    let start = position + Self.block
    guard size <= source.count - start else { throw FormatError("the archive is cut off") }
    return (source[position + 156], start..<start + size)
  }

  private func damage(_ position: Int) -> FormatError {
    FormatError("the archive is damaged at byte \(position)")
  }

  private func name(_ header: Int) -> String {
    let field = { (offset: Int, length: Int) -> String in
      let range = (header + offset)..<(header + offset + length)
      let end = range.first { source[$0] == 0 } ?? range.upperBound
      return source.text(range.lowerBound..<end) ?? ""
    }
    let prefix = source.starts("ustar\0", at: header + 257) ? field(345, 155) : ""
    return (prefix.isEmpty ? "" : prefix + "/") + field(0, 100)
  }

  private func longName(_ content: Range<Int>) throws(FormatError) -> String {
    let end = content.first { source[$0] == 0 } ?? content.upperBound
    guard let name = source.text(content.lowerBound..<end), !name.isEmpty else {
      throw damage(content.lowerBound)
    }
    return name
  }

  /// Octal digits, ended by a blank or NUL. Sizes beyond 8 GiB have another form, and no value is that large.
  private func number(_ start: Int, _ length: Int) -> Int? {
    let field = (start..<(start + length)).map { source[$0] }
    let digits = field.drop { $0 == 0x20 }.prefix { $0 != 0 && $0 != 0x20 }
    return digits.isEmpty ? 0 : Digits.number(digits, radix: 8)
  }

  private func checksumHolds(_ header: Int) -> Bool {
    let sum = (0..<Self.block).reduce(0) { $0 + Int((148..<156).contains($1) ? 0x20 : source[header + $1]) }
    return number(header + 148, 8) == sum
  }

  /// Records `LENGTH NAME=VALUE\n`, where the length is that of the whole record in decimal.
  private func readRecords(_ range: Range<Int>, _ member: inout Member) throws(FormatError) {
    var position = range.lowerBound
    while position < range.upperBound {
      guard
        let blank = (position..<min(range.upperBound, position + 20)).first(where: { source[$0] == 0x20 }),
        let length = Digits.number(source.bytes(position..<blank)), length <= range.upperBound - position,
        length > blank - position + 2, source[position + length - 1] == 0x0A
      else { throw damage(position) }
      let record = (blank + 1)..<(position + length - 1)
      guard let equals = record.first(where: { source[$0] == UInt8(ascii: "=") }),
        let name = source.text(record.lowerBound..<equals)
      else { throw damage(position) }
      try take(name, (equals + 1)..<record.upperBound, &member)
      position += length
    }
  }

  private func take(_ name: String, _ value: Range<Int>, _ member: inout Member) throws(FormatError) {
    switch name {
    case "path":
      guard let path = source.text(value) else { throw damage(value.lowerBound) }
      member.path = path
    case "size": throw FormatError("the archive has a member larger than 8 GiB")
    case _ where name.hasPrefix("SCHILY.xattr.user."):
      let attribute = ItemEntry.Attribute(String(name.dropFirst("SCHILY.xattr.".count)), source.bytes(value))
      guard !member.attributes.contains(where: { $0.name == attribute.name }) else {
        throw FormatError("the archive has the attribute \(attribute.name) of a file twice")
      }
      member.attributes.append(attribute)
    default: break
    }
  }
}
