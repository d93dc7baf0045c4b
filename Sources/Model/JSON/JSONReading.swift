/// Reads a JSON array or object (RFC 8259) byte by byte into values of a property list.
///
/// Values that a property list can't hold are refused: `null`, U+0000 in a string, a lone surrogate, an integer
/// beyond 64 bits, a number beyond a double's range. Two members of one name are refused as well, because
/// one of them would be lost.
struct JSONReading: ContentReading {
  /// How deep arrays and objects may lie in each other, so that no recursion ends in a stack overflow. A property list
  /// may have 512 levels, of which the suite's own dictionary is one.
  static let maximumDepth = 511

  private enum Place {
    case start, value, elementOrEnd, member, memberOrEnd, colon, separator, end
    case string, number, word
  }

  /// An array or object that is not closed yet.
  private struct Frame {
    let isObject: Bool
    var elements: [SettingValue] = []
    var members: [ExactString: SettingValue] = [:]
    /// The name of the member whose value comes next.
    var name: ExactString?
  }

  private let opening: UInt8
  private var place = Place.start
  private var frames: [Frame] = []
  private var string = JSONString()
  private var number = NumberText(.json)
  private var word: (rest: ArraySlice<UInt8>, value: Bool) = ([], false)
  private var result: SettingValue?

  init(opening: UInt8) {
    self.opening = opening
  }

  mutating func append(_ byte: UInt8) -> Bool {
    switch place {
    case .string: appendToString(byte)
    case .number: appendToNumber(byte)
    case .word: appendToWord(byte)
    default: ASCII.isBlank(byte) || appendMark(byte)
    }
  }

  mutating func finish() -> SettingValue? { result }
}

extension JSONReading {
  /// Takes a byte between strings, numbers and words.
  private mutating func appendMark(_ byte: UInt8) -> Bool {
    switch (place, byte) {
    case (.start, opening): open(byte)
    case (.elementOrEnd, ASCII.closeBracket), (.memberOrEnd, ASCII.closeBrace): close()
    case (.value, _), (.elementOrEnd, _): begin(byte)
    case (.member, ASCII.quote), (.memberOrEnd, ASCII.quote): beginString()
    case (.colon, ASCII.colon): go(to: .value)
    case (.separator, ASCII.comma): go(to: isInObject ? .member : .value)
    case (.separator, isInObject ? ASCII.closeBrace : ASCII.closeBracket): close()
    default: false
    }
  }

  private mutating func begin(_ byte: UInt8) -> Bool {
    switch byte {
    case ASCII.openBrace, ASCII.openBracket: open(byte)
    case ASCII.quote: beginString()
    case UInt8(ascii: "t"): beginWord("rue", value: true)
    case UInt8(ascii: "f"): beginWord("alse", value: false)
    default: beginNumber(byte)
    }
  }

  private var isInObject: Bool { frames.last?.isObject ?? false }

  private mutating func go(to next: Place) -> Bool {
    place = next
    return true
  }

  private mutating func open(_ byte: UInt8) -> Bool {
    guard frames.count < Self.maximumDepth else { return false }
    frames.append(Frame(isObject: byte == ASCII.openBrace))
    return go(to: byte == ASCII.openBrace ? .memberOrEnd : .elementOrEnd)
  }

  private mutating func close() -> Bool {
    let frame = frames.removeLast()
    return take(frame.isObject ? .dictionary(frame.members) : .array(frame.elements))
  }

  /// Puts a value where it belongs.
  private mutating func take(_ value: SettingValue) -> Bool {
    guard let top = frames.indices.last else {
      result = value
      return go(to: .end)
    }
    if let name = frames[top].name {
      frames[top].members[name] = value
      frames[top].name = nil
    } else {
      frames[top].elements.append(value)
    }
    return go(to: .separator)
  }
}

extension JSONReading {
  private mutating func beginString() -> Bool {
    string = JSONString()
    return go(to: .string)
  }

  private mutating func appendToString(_ byte: UInt8) -> Bool {
    guard string.append(byte) else { return false }
    guard let text = string.takeText() else { return true }
    guard let top = frames.indices.last, frames[top].isObject, frames[top].name == nil else {
      return take(.string(text))
    }
    frames[top].name = text
    return frames[top].members[text] == nil && go(to: .colon)
  }

  private mutating func beginNumber(_ byte: UInt8) -> Bool {
    number = NumberText(.json)
    return number.append(byte) && go(to: .number)
  }

  private mutating func appendToNumber(_ byte: UInt8) -> Bool {
    guard ASCII.isBlank(byte) || byte == ASCII.comma || byte == ASCII.closeBrace || byte == ASCII.closeBracket
    else { return number.append(byte) }
    // Only the byte after it says that a number is over.
    guard let value = number.value, take(value) else { return false }
    return append(byte)
  }

  private mutating func beginWord(_ rest: String, value: Bool) -> Bool {
    word = (Array(rest.utf8)[...], value)
    return go(to: .word)
  }

  private mutating func appendToWord(_ byte: UInt8) -> Bool {
    guard word.rest.popFirst() == byte else { return false }
    return word.rest.isEmpty ? take(.bool(word.value)) : true
  }
}
