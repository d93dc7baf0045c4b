import Model

extension XMLReader {
  static func isBlank(_ byte: UInt8) -> Bool {
    byte == 0x20 || byte == 0x0A || byte == 0x09 || byte == 0x0D
  }

  /// Skips white space, comments, processing instructions and the document type.
  mutating func skipMarkup() throws(PropertyListError) {
    while true {
      while position < bytes.count, Self.isBlank(bytes[position]) { position += 1 }
      guard position + 1 < bytes.count, bytes[position] == UInt8(ascii: "<") else { return }
      switch bytes[position + 1] {
      case UInt8(ascii: "?"): try skip(past: "?>")
      case UInt8(ascii: "!") where isAt("<!--"): try skip(past: "-->", from: 4)
      case UInt8(ascii: "!"): try skipDocumentType()
      default: return
      }
    }
  }

  func isAt(_ text: String) -> Bool {
    var index = position
    for byte in text.utf8 {
      guard index < bytes.count, bytes[index] == byte else { return false }
      index += 1
    }
    return true
  }

  /// Moves behind the next `end`, searched from `offset` bytes ahead.
  mutating func skip(past end: String, from offset: Int = 0) throws(PropertyListError) {
    position += offset
    while position < bytes.count {
      if isAt(end) {
        position += end.utf8.count
        return
      }
      position += 1
    }
    throw PropertyListError("it ends too early")
  }

  /// `<!DOCTYPE … [ … ]>`; what it declares is not obeyed: entities of one's own are refused where used.
  private mutating func skipDocumentType() throws(PropertyListError) {
    guard isAt("<!DOCTYPE") else { throw PropertyListError("markup that is not understood") }
    var quote: UInt8?
    var brackets = 0
    while position < bytes.count {
      let byte = bytes[position]
      position += 1
      switch byte {
      case quote: quote = nil
      case _ where quote != nil: break
      case UInt8(ascii: "\""), UInt8(ascii: "'"): quote = byte
      case UInt8(ascii: "["): brackets += 1
      case UInt8(ascii: "]"): brackets -= 1
      case UInt8(ascii: ">") where brackets <= 0: return
      default: break
      }
    }
    throw PropertyListError("it ends too early")
  }

  /// Reads `<name …>` or `<name …/>`; attributes mean nothing in a property list.
  mutating func openTag() throws(PropertyListError) -> Tag {
    guard position < bytes.count, bytes[position] == UInt8(ascii: "<") else {
      throw PropertyListError(position < bytes.count ? "text outside of a value" : "it ends too early")
    }
    position += 1
    let element = try name()
    var quote: UInt8?
    while position < bytes.count {
      let byte = bytes[position]
      position += 1
      switch byte {
      case UInt8(ascii: ">") where quote == nil:
        return Tag(element: element, isEmpty: bytes[position - 2] == UInt8(ascii: "/"))
      case quote: quote = nil
      case UInt8(ascii: "\""), UInt8(ascii: "'"): if quote == nil { quote = byte }
      case UInt8(ascii: "<"): throw PropertyListError("a tag that does not end")
      default: break
      }
    }
    throw PropertyListError("it ends too early")
  }

  mutating func closeTag(_ element: XMLElement) throws(PropertyListError) {
    guard isAt("</") else {
      throw PropertyListError(position < bytes.count ? "a value too many" : "it ends too early")
    }
    position += 2
    guard try name() == element else { throw PropertyListError("a closing tag of another element") }
    while position < bytes.count, Self.isBlank(bytes[position]) { position += 1 }
    guard position < bytes.count, bytes[position] == UInt8(ascii: ">") else {
      throw PropertyListError("a tag that does not end")
    }
    position += 1
  }

  /// The element whose name is here; stops behind it.
  private mutating func name() throws(PropertyListError) -> XMLElement {
    var packed: UInt64 = 0
    let start = position
    while position < bytes.count, bytes[position] > 0x20 {
      let byte = bytes[position]
      if byte == UInt8(ascii: ">") || byte == UInt8(ascii: "/") { break }
      packed = packed << 8 | UInt64(byte)
      position += 1
    }
    guard position - start <= 8, let element = XMLElement(packed: packed) else {
      throw PropertyListError(position < bytes.count ? "an element of another kind" : "it ends too early")
    }
    return element
  }
}
