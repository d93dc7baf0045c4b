internal import Model

/// How names are percent-encoded, cut and told apart.
enum PathNameCoding {
  static let percent = UInt8(ascii: "%")
  static let semicolon = UInt8(ascii: ";")

  private static let point = UInt8(ascii: ".")
  private static let emptyName = "%"
  private static let digestMark = "%~"
  private static let digestDigits = 16
  /// The most that is left of a cut name, so that the digest fits behind it.
  private static let longestStem = 230
  private static let upperHexadecimal = Array("0123456789ABCDEF".utf8)
  private static let lowerHexadecimal = Array("0123456789abcdef".utf8)

  /// The encoding of one whole name.
  static func encode(_ plain: ExactString) -> String {
    encode(plain, isFirst: true) { _ in false }
  }

  /// The encoding of one part of the last level of an internet password; only the first may begin with `.`.
  static func encode(part plain: ExactString, isFirst: Bool) -> String {
    encode(plain, isFirst: isFirst) { $0 == semicolon }
  }

  /// Undoes either encoding; nil where an escape is broken or the result is no UTF-8.
  static func decode(_ encoded: some Sequence<UInt8>) -> ExactString? {
    var rest = Array(encoded)[...]
    if rest.elementsEqual(emptyName.utf8) { return "" }
    var bytes: [UInt8] = []
    while let byte = rest.popFirst() {
      guard let plain = byte == percent ? unescape(&rest) : byte else { return nil }
      bytes.append(plain)
    }
    return ExactString(utf8: bytes)
  }
}

extension PathNameCoding {
  /// Whether a name is exactly what encoding its plain form gives.
  static func isCanonical(_ name: String, at level: PathName.Level) -> Bool {
    switch level {
    case .plain: isPlain(name.utf8) || decode(name.utf8).map(encode)?.utf8.elementsEqual(name.utf8) == true
    case .internetLeaf: InternetLeaf(encoded: name)?.encoded.utf8.elementsEqual(name.utf8) == true
    }
  }

  /// Whether a name ends as cut and disambiguated ones do.
  static func hasDigest(_ name: String) -> Bool {
    let end = name.utf8.suffix(digestMark.utf8.count + digestDigits)
    return end.count < name.utf8.count && end.starts(with: digestMark.utf8)
      && end.dropFirst(digestMark.utf8.count).allSatisfy(lowerHexadecimal.contains)
  }

  /// `%~` and the first 16 hexadecimal digits of the SHA-256 of a name's UTF-8.
  static func digest(_ plain: ExactString) -> String {
    let hash = SHA256Hasher.hash(Array(plain.utf8)).prefix(digestDigits / 2)
    let digits = hash.flatMap { [lowerHexadecimal[Int($0 >> 4)], lowerHexadecimal[Int($0 & 15)]] }
    return digestMark + String(decoding: digits, as: UTF8.self)
  }

  /// The longest beginning of at most 230 bytes that splits no scalar and no escape.
  static func cut(_ encoded: String) -> String {
    var stem = Array(encoded.utf8.prefix(longestStem))
    guard encoded.utf8.count > stem.count else { return encoded }
    if let escape = stem.suffix(2).lastIndex(of: percent) { stem.removeSubrange(escape...) }
    while String(validating: stem, as: UTF8.self) == nil { stem.removeLast() }
    return String(decoding: stem, as: UTF8.self)
  }
}

extension PathNameCoding {
  private static func encode(
    _ plain: ExactString, isFirst: Bool, escaping isEscaped: (UInt8) -> Bool
  ) -> String {
    if plain.isEmpty { return emptyName }
    if isPlain(plain.utf8), !plain.utf8.contains(where: isEscaped) { return plain.string }
    var bytes: [UInt8] = []
    for byte in plain.utf8 {
      let isLeadingPoint = isFirst && bytes.isEmpty && byte == point
      let escapes = isLeadingPoint || isSpecial(byte) || isEscaped(byte)
      bytes += escapes ? escape(byte) : [byte]
    }
    return String(decoding: bytes, as: UTF8.self)
  }

  /// The way of nearly every name: nothing in it has to be escaped, so it is its own encoding.
  private static func isPlain(_ name: String.UTF8View) -> Bool {
    guard let first = name.first, first != point else { return false }
    return !name.contains(where: isSpecial)
  }

  private static func isSpecial(_ byte: UInt8) -> Bool {
    byte < 0x20 || byte == percent || byte == UInt8(ascii: "/") || byte == 0x7F
  }

  private static func escape(_ byte: UInt8) -> [UInt8] {
    [percent, upperHexadecimal[Int(byte >> 4)], upperHexadecimal[Int(byte & 15)]]
  }

  /// Lower-case digits are no canonical encoding, and never reach a name.
  private static func unescape(_ rest: inout ArraySlice<UInt8>) -> UInt8? {
    guard let high = rest.popFirst().flatMap(upperHexadecimal.firstIndex) else { return nil }
    guard let low = rest.popFirst().flatMap(upperHexadecimal.firstIndex) else { return nil }
    return UInt8(high << 4 | low)
  }
}
