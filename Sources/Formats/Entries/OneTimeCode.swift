import Model
import SecretMemory

/// A password manager's text for an entry's one-time codes, where it can be an `otpauth:` URI.
struct OneTimeCode {
  private enum Kind {
    case uri
    /// The key alone, in base32, of codes of 6 digits that change every 30 seconds.
    case key
  }

  /// Keys are longer; a shorter word is none.
  private static let shortestKey = 8

  let slice: SecretSlice
  private let kind: Kind

  /// nil: it is neither such a URI nor a bare key.
  init?(_ slice: SecretSlice) throws(FormatError) {
    self.slice = slice
    let bytes = try slice.bytes()
    if Self.isURI(bytes.span) {
      kind = .uri
    } else if Self.isKey(bytes.span) {
      kind = .key
    } else {
      return nil
    }
  }

  private static func isURI(_ bytes: Span<UInt8>) -> Bool {
    (try? KeyURI.check(bytes)) != nil
  }

  private static func isKey(_ bytes: Span<UInt8>) -> Bool {
    var (count, isPadded) = (0, false)
    for index in bytes.indices {
      let byte = bytes[index]
      if isSeparator(byte) { continue }
      if byte == UInt8(ascii: "=") {
        isPadded = true
        continue
      }
      guard base32(byte) != nil, !isPadded else { return false }
      count += 1
    }
    return count >= shortestKey
  }

  /// People type keys in groups.
  private static func isSeparator(_ byte: UInt8) -> Bool { byte == 0x20 || byte == UInt8(ascii: "-") }

  /// The digit in capitals; nil: it is none.
  private static func base32(_ byte: UInt8) -> UInt8? {
    switch byte {
    case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "2")...UInt8(ascii: "7"): byte
    case UInt8(ascii: "a")...UInt8(ascii: "z"): byte - 0x20
    default: nil
    }
  }

  /// The URI; a bare key's is made when it is asked for, and names the service and the account.
  func uri(issuer: String, account: String) -> SecretSlice {
    guard kind == .key else { return slice }
    let name = KeyURI.escaped(issuer)
    let label = name.isEmpty ? KeyURI.escaped(account) : "\(name):\(KeyURI.escaped(account))"
    let coding = SecretSlice.Coding.oneTimeKey(slice.coding, label: label, issuer: name)
    return SecretSlice(slice.source, slice.range, coding)
  }

  /// Decodes what `uri` gave of a bare key.
  static func decode(
    _ key: SecretSlice, label: String, issuer: String, into decoded: inout DecodedSecret
  ) throws(FormatError) {
    let bytes = try key.bytes()
    for byte in "\(KeyURI.scheme)totp/\(label)?secret=".utf8 { try decoded.append(byte) }
    for index in bytes.span.indices {
      if let digit = base32(bytes[index]) { try decoded.append(digit) }
    }
    if !issuer.isEmpty { for byte in "&issuer=\(issuer)".utf8 { try decoded.append(byte) } }
  }
}
