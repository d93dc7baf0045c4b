import Model

/// The parameters of an `otpauth:` URI that `KeyURI.check` has taken. The key is not among them, but where it stands.
struct KeyURIParameters {
  private(set) var isCounterBased = false
  private(set) var algorithm: String?
  private(set) var digits: UInt64?
  private(set) var period: UInt64?
  private(set) var counter: UInt64?
  private(set) var encoder: String?
  private(set) var keyRange = 0..<0
  private(set) var counterRange = 0..<0

  /// Longer values are none that is known.
  private static let longestWord = 32

  init(_ uri: Span<UInt8>) {
    let type = KeyURI.scheme.utf8.count
    isCounterBased = uri[type] | 0x20 == UInt8(ascii: "h")
    var start = (type..<uri.count).first { uri[$0] == UInt8(ascii: "?") } ?? uri.count
    while start < uri.count {
      let end = (start + 1..<uri.count).first { uri[$0] == UInt8(ascii: "&") } ?? uri.count
      take(uri, start + 1..<end)
      start = end
    }
  }

  private mutating func take(_ uri: Span<UInt8>, _ range: Range<Int>) {
    guard let equals = range.first(where: { uri[$0] == UInt8(ascii: "=") }) else { return }
    let value = equals + 1..<range.upperBound
    let bytes = uri.extracting(value)
    switch Self.name(uri.extracting(range.lowerBound..<equals)) {
    case "secret": keyRange = value
    case "algorithm": algorithm = Self.word(bytes)
    case "digits": digits = UInt64(Self.word(bytes))
    case "period": period = UInt64(Self.word(bytes))
    case "counter": (counter, counterRange) = (UInt64(Self.word(bytes)), value)
    case "encoder": encoder = Self.word(bytes)
    default: break
    }
  }

  /// As it stands there, which is how `KeyURI.check` knows it.
  private static func name(_ bytes: Span<UInt8>) -> String {
    var name = ""
    for index in 0..<min(bytes.count, longestWord) {
      name.unicodeScalars.append(Unicode.Scalar(bytes[index]))
    }
    return name
  }

  /// A value that is no secret, in small letters.
  private static func word(_ bytes: Span<UInt8>) -> String {
    var word = ""
    var reader = DecodedBytes(bytes)
    while let byte = reader.next(), word.utf8.count < longestWord {
      let isCapital = (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte)
      word.unicodeScalars.append(Unicode.Scalar(isCapital ? byte | 0x20 : byte))
    }
    return word
  }
}

/// The bytes of a component of a URI, without percent-encoding (RFC 3986, section 2.1).
struct DecodedBytes: ~Escapable {
  private let bytes: Span<UInt8>
  private var index = 0

  @_lifetime(copy bytes)
  init(_ bytes: Span<UInt8>) {
    self.bytes = bytes
  }

  mutating func next() -> UInt8? {
    guard index < bytes.count else { return nil }
    defer { index += 1 }
    guard bytes[index] == UInt8(ascii: "%"), index + 2 < bytes.count,
      let high = Self.hexDigit(bytes[index + 1]), let low = Self.hexDigit(bytes[index + 2])
    else { return bytes[index] }
    index += 2
    return high << 4 | low
  }

  private static func hexDigit(_ byte: UInt8) -> UInt8? {
    switch byte {
    case 0x30...0x39: byte - 0x30
    case 0x41...0x46, 0x61...0x66: (byte | 0x20) - 0x61 + 10
    default: nil
    }
  }
}
