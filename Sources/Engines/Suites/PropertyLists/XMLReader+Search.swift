import Model

/// Keys that are looked for in the dictionary at the top of a property list.
struct KeySearch {
  private let wanted: [[UInt8]]
  /// Where each one's entry is, from its `<key>` to the end of its value.
  private(set) var places: [Range<Int>?]
  private(set) var values: [SettingValue?]
  /// The entries of the dictionary.
  private(set) var count = 0
  /// Before the first entry with a later key, for each key that was not found yet.
  private var gaps: [Int?]

  init(_ keys: [ExactString]) {
    wanted = keys.map { Array($0.utf8) }
    places = Array(repeating: nil, count: keys.count)
    values = Array(repeating: nil, count: keys.count)
    gaps = places.map { _ in nil }
  }

  /// Takes note of the next entry, which begins at `start`. Returns the number of the wanted key that it has.
  fileprivate mutating func next(_ key: ArraySlice<UInt8>, at start: Int) -> Int? {
    count += 1
    var match: Int?
    for index in wanted.indices {
      let order = Self.order(wanted[index], key)
      if order == 0 { match = index } else if order < 0, gaps[index] == nil { gaps[index] = start }
    }
    return match
  }

  /// - Throws: for a key that was found before: of two entries with one key the last counts.
  fileprivate mutating func take(
    _ value: SettingValue, of index: Int, at place: Range<Int>
  ) throws(PropertyListError) {
    guard places[index] == nil else { throw PropertyListError("a key that is there twice") }
    (places[index], values[index]) = (place, value)
  }

  /// Gives the keys that are not there the place where they would be: an empty one.
  fileprivate mutating func end(at end: Int) {
    for index in places.indices where places[index] == nil {
      let gap = gaps[index] ?? end
      places[index] = gap..<gap
    }
  }

  /// Negative: `left` comes first, 0: they are equal.
  private static func order(_ left: [UInt8], _ right: ArraySlice<UInt8>) -> Int {
    var position = right.startIndex
    for byte in left {
      guard position < right.endIndex else { return 1 }
      if byte != right[position] { return Int(byte) - Int(right[position]) }
      position += 1
    }
    return position < right.endIndex ? -1 : 0
  }
}

extension XMLReader {
  /// Looks for keys of the dictionary at the top. The rest is checked as `document()` checks it, and nothing is made of it.
  ///
  /// - Throws: where `document()` does, for another value at the top, and for a wanted key that is there twice.
  mutating func find(_ search: inout KeySearch) throws(PropertyListError) {
    try skipMarkup()
    let first = try openTag()
    let isWrapped = first.element == .plist
    if isWrapped { try skipMarkup() }
    let top = isWrapped ? try openTag() : first
    guard !first.isEmpty, top.element == .dict, !top.isEmpty else {
      throw PropertyListError("what it holds is no dictionary")
    }
    try findEntries(&search)
    if isWrapped {
      try skipMarkup()
      try closeTag(.plist)
    }
    try skipMarkup()
    guard position == bytes.count else { throw PropertyListError("something follows the property list") }
  }

  private mutating func findEntries(_ search: inout KeySearch) throws(PropertyListError) {
    while let start = try nextEntry() {
      guard let match = search.next(try key(), at: start) else {
        skipBlanks()
        if !skipPlainValue() { try skipValue(of: valueTag(), depth: 1) }
        continue
      }
      let tag = try valueTag()
      let value = try value(of: tag, depth: 1)
      try search.take(value, of: match, at: start..<position)
    }
    search.end(at: position)
    try closeTag(.dict)
  }

  /// Where the next entry of a dictionary begins; nil: there is none.
  private mutating func nextEntry() throws(PropertyListError) -> Int? {
    skipBlanks()
    if isAtPlainTag { return position }
    try skipMarkup()
    return isAtClosingTag ? nil : position
  }

  /// Whether a tag begins here, and neither a closing one nor a comment or the like.
  private var isAtPlainTag: Bool {
    position + 1 < bytes.count && bytes[position] == UInt8(ascii: "<")
      && bytes[position + 1] >= UInt8(ascii: "a")
  }

  /// The bytes of a key.
  private mutating func key() throws(PropertyListError) -> ArraySlice<UInt8> {
    if let place = skipPlainKey() { return bytes[place] }
    let tag = try openTag()
    guard tag.element == .key else { throw PropertyListError("a dictionary's value without a key") }
    if let place = try plainText(of: tag) { return bytes[place] }
    return Array(try text(of: tag).utf8)[...]
  }

  private mutating func valueTag() throws(PropertyListError) -> Tag {
    try skipMarkup()
    guard !isAtClosingTag else { throw PropertyListError("a dictionary's key without a value") }
    return try openTag()
  }

  private mutating func skipValue(of tag: Tag, depth: Int) throws(PropertyListError) {
    switch tag.element {
    case .dict, .array: try skipContainer(tag, depth: depth)
    case .string, .key: if try plainText(of: tag) == nil { _ = try text(of: tag) }
    case .integer, .real: try skipNumber(tag, depth: depth)
    default: _ = try value(of: tag, depth: depth)
    }
  }

  private mutating func skipContainer(_ tag: Tag, depth: Int) throws(PropertyListError) {
    guard depth < PropertyLists.deepest else { throw PropertyListError("it is nested too deep") }
    guard !tag.isEmpty else { return }
    while try nextEntry() != nil {
      if tag.element == .dict { _ = try key() }
      try skipValue(of: tag.element == .dict ? valueTag() : openTag(), depth: depth + 1)
    }
    try closeTag(tag.element)
  }

  /// The numbers that are nothing but digits need no parsing.
  private mutating func skipNumber(_ tag: Tag, depth: Int) throws(PropertyListError) {
    let start = position
    if let place = try plainText(of: tag), Self.isPlainNumber(bytes[place], isReal: tag.element == .real) {
      return
    }
    position = start
    _ = try value(of: tag, depth: depth)
  }

  /// At most 18 digits, with a sign before them; of a real with a point between them.
  private static func isPlainNumber(_ text: ArraySlice<UInt8>, isReal: Bool) -> Bool {
    var (digits, points, last): (Int, Int, UInt8) = (0, 0, 0)
    for byte in text {
      switch byte {
      case 0x30...0x39: digits += 1
      case UInt8(ascii: "-") where last == 0: break
      case UInt8(ascii: ".") where isReal && digits > 0: points += 1
      default: return false
      }
      last = byte
    }
    return (1...18).contains(digits) && points <= 1 && (0x30...0x39).contains(last)
  }
}
