import Model

/// Reads an XML property list, strictly: what is not understood is an error, never a guess.
///
/// It reads what Foundation reads (`XMLReaderTests` compares them), but for guesses of Foundation's at damaged
/// files. Line breaks are kept as they are, as Foundation keeps them, where XML would turn CR into LF.
struct XMLReader {
  /// Well-formed UTF-8, so that what lies between two ASCII characters is it too.
  let bytes: [UInt8]
  var position = 0

  init(_ bytes: [UInt8]) {
    self.bytes = bytes
  }

  /// The one value of the document.
  mutating func document() throws(PropertyListError) -> SettingValue {
    try skipMarkup()
    let first = try openTag()
    guard first.element == .plist else { return try end(value(of: first, depth: 0)) }
    guard !first.isEmpty else { throw PropertyListError("it holds no value") }
    try skipMarkup()
    let value = try value(of: openTag(), depth: 0)
    try skipMarkup()
    try closeTag(.plist)
    return try end(value)
  }

  /// Refuses what follows the list: it is damage, and a rewrite would lose it.
  private mutating func end(_ value: SettingValue) throws(PropertyListError) -> SettingValue {
    try skipMarkup()
    guard position == bytes.count else { throw PropertyListError("something follows the property list") }
    return value
  }
}

extension XMLReader {
  struct Tag {
    let element: XMLElement
    /// `<name/>`, without a closing tag.
    let isEmpty: Bool
  }

  mutating func value(of tag: Tag, depth: Int) throws(PropertyListError) -> SettingValue {
    switch tag.element {
    case .dict: return PropertyLists.dictionary(try dictionary(tag, depth: depth))
    case .array: return .array(try array(tag, depth: depth))
    case .key, .string: return .string(ExactString(try text(of: tag)))
    case .true, .false:
      guard try text(of: tag).isEmpty else { throw PropertyListError("a boolean with content") }
      return .bool(tag.element == .true)
    case .integer: return .integer(try XMLScalar.integer(text(of: tag)))
    case .real: return .real(try XMLScalar.real(text(of: tag)))
    case .date: return .date(exact(try XMLScalar.date(text(of: tag))))
    case .data: return .data(try Base64.decode(text(of: tag).utf8.span))
    case .plist: throw PropertyListError("a property list in a property list")
    }
  }

  /// The date whose whole second was read, with the fraction that a comment right behind it gives it.
  ///
  /// A comment that names another second is skipped: the date was changed without it.
  private mutating func exact(_ seconds: Int64) -> SettingDate {
    guard isAt("<!-- ") else { return SettingDate(seconds: seconds) }
    let whole = Array("<!-- \(CivilDate(seconds: seconds).text.dropLast()).".utf8)
    guard bytes[position...].starts(with: whole) else { return SettingDate(seconds: seconds) }
    let digits = bytes[(position + whole.count)...].prefix { $0 != UInt8(ascii: "Z") }
    let end = Array("Z -->".utf8)
    guard bytes[digits.endIndex...].starts(with: end),
      let date = SettingDate(seconds: seconds, fraction: digits)
    else { return SettingDate(seconds: seconds) }
    position = digits.endIndex + end.count
    return date
  }

  private mutating func array(_ tag: Tag, depth: Int) throws(PropertyListError) -> [SettingValue] {
    guard depth < PropertyLists.deepest else { throw PropertyListError("it is nested too deep") }
    guard !tag.isEmpty else { return [] }
    var items: [SettingValue] = []
    while true {
      try skipMarkup()
      if isAtClosingTag { break }
      items.append(try value(of: openTag(), depth: depth + 1))
    }
    try closeTag(.array)
    return items
  }

  /// Of a key that is there twice the last value counts, as in Foundation.
  private mutating func dictionary(
    _ tag: Tag, depth: Int
  ) throws(PropertyListError) -> [ExactString: SettingValue] {
    guard depth < PropertyLists.deepest else { throw PropertyListError("it is nested too deep") }
    guard !tag.isEmpty else { return [:] }
    var entries: [ExactString: SettingValue] = [:]
    while true {
      try skipMarkup()
      if isAtClosingTag { break }
      let keyTag = try openTag()
      guard keyTag.element == .key else { throw PropertyListError("a dictionary's value without a key") }
      let key = ExactString(try text(of: keyTag))
      try skipMarkup()
      guard !isAtClosingTag else { throw PropertyListError("a dictionary's key without a value") }
      entries[key] = try value(of: openTag(), depth: depth + 1)
    }
    try closeTag(.dict)
    return entries
  }

  var isAtClosingTag: Bool {
    position + 1 < bytes.count && bytes[position] == UInt8(ascii: "<")
      && bytes[position + 1] == UInt8(ascii: "/")
  }
}
