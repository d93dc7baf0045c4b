import Model

extension XMLReader {
  /// The text of an element, up to and behind its closing tag.
  mutating func text(of tag: Tag) throws(PropertyListError) -> String {
    if let place = try plainText(of: tag) { return String(decoding: bytes[place], as: UTF8.self) }
    return try encodedText(of: tag)
  }

  /// Where the text of an element is, and moves behind its closing tag; nil: it has to be decoded, and nothing is read.
  mutating func plainText(of tag: Tag) throws(PropertyListError) -> Range<Int>? {
    guard !tag.isEmpty else { return position..<position }
    let start = position
    var end = position
    while end < bytes.count {
      let byte = bytes[end]
      if byte == UInt8(ascii: "<") || byte == UInt8(ascii: "&") { break }
      end += 1
    }
    guard end + 1 < bytes.count, bytes[end] == UInt8(ascii: "<"), bytes[end + 1] == UInt8(ascii: "/") else {
      return nil
    }
    position = end
    try closeTag(tag.element)
    return start..<end
  }

  /// The same where there are references, CDATA sections or comments.
  private mutating func encodedText(of tag: Tag) throws(PropertyListError) -> String {
    var text: [UInt8] = []
    while position < bytes.count, !isAt("</") {
      if bytes[position] == UInt8(ascii: "&") {
        try appendReference(to: &text)
      } else if bytes[position] != UInt8(ascii: "<") {
        appendPlain(to: &text)
      } else if isAt("<![CDATA[") {
        try appendSection(to: &text)
      } else {
        guard isAt("<!--") || isAt("<?") else { throw PropertyListError("an element in a value") }
        try skip(past: isAt("<?") ? "?>" : "-->", from: isAt("<?") ? 0 : 4)
      }
    }
    try closeTag(tag.element)
    return String(decoding: text, as: UTF8.self)
  }

  private mutating func appendPlain(to text: inout [UInt8]) {
    while position < bytes.count, bytes[position] != UInt8(ascii: "<"), bytes[position] != UInt8(ascii: "&") {
      text.append(bytes[position])
      position += 1
    }
  }

  private mutating func appendSection(to text: inout [UInt8]) throws(PropertyListError) {
    let start = position + 9
    try skip(past: "]]>", from: 9)
    text += bytes[start..<position - 3]
  }

  private mutating func appendReference(to text: inout [UInt8]) throws(PropertyListError) {
    if let (character, length) = commonReference {
      text.append(character)
      position += length
      return
    }
    let name = bytes[position...].dropFirst().prefix(12).prefix { $0 != UInt8(ascii: ";") }
    position += name.count + 2
    guard position <= bytes.count, bytes[position - 1] == UInt8(ascii: ";") else {
      throw PropertyListError("an “&” that begins no reference")
    }
    guard let scalar = Self.scalar(named: String(decoding: name, as: UTF8.self)) else {
      throw PropertyListError("a reference to no character")
    }
    text += Array(String(Character(scalar)).utf8)
  }

  /// The three that every text with markup is full of, without a string for each.
  private var commonReference: (character: UInt8, length: Int)? {
    if isAt("&lt;") { return (UInt8(ascii: "<"), 4) }
    if isAt("&gt;") { return (UInt8(ascii: ">"), 4) }
    return isAt("&amp;") ? (UInt8(ascii: "&"), 5) : nil
  }

  private static func scalar(named name: String) -> Unicode.Scalar? {
    switch name {
    case "lt": "<"
    case "gt": ">"
    case "amp": "&"
    case "quot": "\""
    case "apos": "'"
    case _ where name.hasPrefix("#x") || name.hasPrefix("#X"): number(name.dropFirst(2), radix: 16)
    case _ where name.hasPrefix("#"): number(name.dropFirst(), radix: 10)
    default: nil
    }
  }

  private static func number(_ digits: Substring, radix: Int) -> Unicode.Scalar? {
    // `UInt32(_:radix:)` accepts a sign, a reference does not.
    guard digits.first?.isHexDigit == true else { return nil }
    return UInt32(digits, radix: radix).flatMap(Unicode.Scalar.init)
  }
}
