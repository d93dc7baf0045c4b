import Model
import SecretMemory

/// A password manager's text for an entry's one-time codes, where it can be an `otpauth:` URI.
struct OneTimeCode {
  private enum Kind {
    case uri
    /// The key alone.
    case key(OneTimeKey)
  }

  let slice: SecretSlice
  private let kind: Kind

  /// Takes such a URI, a bare key in base32, and `steam://` with one behind it.
  ///
  /// - Parameters:
  ///   - slice: the text.
  ///   - key: how codes are computed from a bare key.
  /// - Throws: `FormatError` where the text can't be decoded.
  init?(_ slice: SecretSlice, _ key: OneTimeKey = OneTimeKey()) throws(FormatError) {
    self.slice = slice
    let bytes = try slice.bytes()
    if (try? KeyURI.check(bytes.span)) != nil {
      kind = .uri
    } else if key.takes(bytes.span) {
      var key = key
      if key.isSteam(bytes.span) { key.parameters += OneTimeKey.steam }
      kind = .key(key)
    } else {
      return nil
    }
  }

  /// The URI; a bare key's is made when it is asked for, and names the service and the account.
  func uri(issuer: String, account: String) -> SecretSlice {
    guard case .key(var key) = kind else { return slice }
    key.issuer = KeyURI.escaped(issuer)
    key.label =
      key.issuer.isEmpty ? KeyURI.escaped(account) : "\(key.issuer):\(KeyURI.escaped(account))"
    return SecretSlice(slice.source, slice.range, .oneTimeKey(slice.coding, key))
  }
}

/// The parts of the `otpauth:` URI of a bare key that are no secret, and how the key stands in its source.
public struct OneTimeKey: Sendable {
  enum Encoding: Sendable {
    /// Of at least eight digits: a shorter word is no key. People type them in groups.
    case base32
    case hexadecimal
    /// The text is the key.
    case text
  }

  /// Of Steam's codes, which have an alphabet of their own.
  static let steam = "&encoder=steam"
  private static let steamScheme = "steam://"
  private static let shortestKey = 8

  var encoding = Encoding.base32
  /// Whether `steam://` before the key stands for Steam's codes. In a field that has the key alone it is part of the key.
  var mayHaveScheme = true
  /// Whether the codes are those of a counter (RFC 4226).
  var isCounterBased = false
  /// Further parameters, each with `&` before it, percent-encoded. Without any, codes have six digits and change every 30 seconds.
  var parameters = ""
  /// Percent-encoded, as is the issuer.
  var label = ""
  var issuer = ""

  fileprivate func isSteam(_ bytes: Span<UInt8>) -> Bool { schemeLength(bytes) > 0 }

  /// How many bytes the scheme before the key has; 0: there is none.
  private func schemeLength(_ bytes: Span<UInt8>) -> Int {
    let scheme = Array(Self.steamScheme.utf8)
    guard mayHaveScheme, bytes.count > scheme.count else { return 0 }
    return scheme.indices.allSatisfy { bytes[$0] == scheme[$0] } ? scheme.count : 0
  }

  /// Whether the bytes are a key that is encoded so.
  fileprivate func takes(_ bytes: Span<UInt8>) -> Bool {
    switch encoding {
    case .text: return !bytes.isEmpty
    case .hexadecimal:
      return !bytes.isEmpty && bytes.count.isMultiple(of: 2)
        && bytes.indices.allSatisfy { Self.hexDigit(bytes[$0]) != nil }
    case .base32:
      var (count, isPadded) = (0, false)
      for index in schemeLength(bytes)..<bytes.count {
        let byte = bytes[index]
        if Self.isSeparator(byte) { continue }
        if byte == UInt8(ascii: "=") {
          isPadded = true
          continue
        }
        guard Self.base32(byte) != nil, !isPadded else { return false }
        count += 1
      }
      return count >= Self.shortestKey
    }
  }

  /// Writes the URI of a key.
  func decode(_ key: SecretSlice, into decoded: inout DecodedSecret) throws(FormatError) {
    let bytes = try key.bytes()
    let type = isCounterBased ? "hotp" : "totp"
    for byte in "\(KeyURI.scheme)\(type)/\(label)?secret=".utf8 { try decoded.append(byte) }
    switch encoding {
    case .base32:
      for index in schemeLength(bytes.span)..<bytes.count {
        if let digit = Self.base32(bytes[index]) { try decoded.append(digit) }
      }
    case .text: try encode(bytes.count, into: &decoded) { bytes[$0] }
    case .hexadecimal:
      try encode(bytes.count / 2, into: &decoded) { index in
        let (high, low) = (Self.hexDigit(bytes[2 * index]) ?? 0, Self.hexDigit(bytes[2 * index + 1]) ?? 0)
        return high << 4 | low
      }
    }
    let name = issuer.isEmpty ? "" : "&issuer=\(issuer)"
    for byte in (parameters + name).utf8 { try decoded.append(byte) }
  }

  /// RFC 4648, section 6, without padding.
  private func encode(
    _ count: Int, into decoded: inout DecodedSecret, _ byte: (Int) -> UInt8
  ) throws(FormatError) {
    let digits = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567".utf8)
    var (bits, held) = (0, 0)
    for index in 0..<count {
      bits = bits << 8 & 0xFFFF | Int(truncatingIfNeeded: byte(index))
      held += 8
      while held >= 5 {
        held -= 5
        try decoded.append(digits[bits >> held & 31])
      }
    }
    if held > 0 { try decoded.append(digits[bits << (5 - held) & 31]) }
  }

  private static func isSeparator(_ byte: UInt8) -> Bool { byte == 0x20 || byte == UInt8(ascii: "-") }

  /// The digit in capitals; nil: it is none.
  private static func base32(_ byte: UInt8) -> UInt8? {
    switch byte {
    case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "2")...UInt8(ascii: "7"): byte
    case UInt8(ascii: "a")...UInt8(ascii: "z"): byte - 0x20
    default: nil
    }
  }

  private static func hexDigit(_ byte: UInt8) -> UInt8? {
    switch byte {
    case 0x30...0x39: byte - 0x30
    case 0x41...0x46, 0x61...0x66: (byte | 0x20) - 0x61 + 10
    default: nil
    }
  }
}
