import Model

/// The texts of numbers and dates in XML property lists.
enum XMLScalar {
  /// Decimal, or hexadecimal after `0x`, as Foundation reads it; white space around it is no harm.
  static func integer(_ text: String) throws(PropertyListError) -> Int128 {
    let digits = trim(text)
    let isNegative = digits.first == UInt8(ascii: "-")
    let unsigned = isNegative || digits.first == UInt8(ascii: "+") ? digits.dropFirst() : digits
    let isHex = unsigned.starts(with: [0x30, 0x78]) || unsigned.starts(with: [0x30, 0x58])
    let magnitude = isHex ? unsigned.dropFirst(2) : unsigned
    // `Int128(_:radix:)` accepts a sign, and there has been one.
    guard magnitude.first.map({ $0 != UInt8(ascii: "-") && $0 != UInt8(ascii: "+") }) == true,
      let number = Int128(String(decoding: magnitude, as: UTF8.self), radix: isHex ? 16 : 10),
      SettingValue.integers.contains(isNegative ? -number : number)
    else { throw PropertyListError("an integer that is none") }
    return isNegative ? -number : number
  }

  /// Reads the syntax of strtod(3) in the C locale, without its hexadecimal forms and payloads of `nan`.
  static func real(_ text: String) throws(PropertyListError) -> Double {
    let digits = String(decoding: trim(text), as: UTF8.self).lowercased()
    switch digits {
    case "nan", "+nan", "-nan": return .nan
    case "inf", "+inf", "infinity", "+infinity": return .infinity
    case "-inf", "-infinity": return -.infinity
    default: break
    }
    guard digits.utf8.allSatisfy(isPartOfReal), let number = Double(digits) else {
      throw PropertyListError("a real that is none")
    }
    return number
  }

  private static func isPartOfReal(_ byte: UInt8) -> Bool {
    (0x30...0x39).contains(byte) || byte == 0x2B || byte == 0x2D || byte == 0x2E || byte == 0x65
  }

  /// `YYYY-MM-DDThh:mm:ssZ`, with more digits of the year or a sign where there are.
  static func date(_ text: String) throws(PropertyListError) -> Int64 {
    let characters = trim(text)
    let isNegative = characters.first == UInt8(ascii: "-")
    let fields = (isNegative ? characters.dropFirst() : characters).split(
      omittingEmptySubsequences: false, whereSeparator: { "-T:Z".utf8.contains($0) })
    guard characters.last == UInt8(ascii: "Z"), fields.count == 7, fields[6].isEmpty,
      fields[0].count >= 4, fields[0].count <= 12, fields[1...5].allSatisfy({ $0.count == 2 }),
      fields[...5].joined().allSatisfy({ (0x30...0x39).contains($0) })
    else { throw PropertyListError("a date that is none") }
    let numbers = fields[...5].map { $0.reduce(Int64(0)) { $0 * 10 + Int64($1 - 0x30) } }
    let date = CivilDate(
      year: isNegative ? -numbers[0] : numbers[0], month: numbers[1], day: numbers[2],
      hour: numbers[3], minute: numbers[4], second: numbers[5])
    guard let seconds = date.seconds, PropertyLists.dates.contains(seconds) else {
      throw PropertyListError("a date that is none")
    }
    return seconds
  }

  /// Reals as they read back bit by bit, everywhere; infinities as Apple spells them.
  static func text(_ real: Double) -> String {
    guard real.isInfinite else { return real.isNaN ? "nan" : real.description }
    return real < 0 ? "-infinity" : "+infinity"
  }

  private static func trim(_ text: String) -> ArraySlice<UInt8> {
    var bytes = Array(text.utf8)[...]
    while let first = bytes.first, XMLReader.isBlank(first) { bytes.removeFirst() }
    while let last = bytes.last, XMLReader.isBlank(last) { bytes.removeLast() }
    return bytes
  }
}
