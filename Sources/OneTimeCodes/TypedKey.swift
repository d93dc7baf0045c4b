public import Model
public import SecretMemory
import Store

/// The text that a service shows to set up one-time codes, as a person types or pastes it: an `otpauth:` URI, a key in
/// base32, or one behind `steam://`.
public enum TypedKey {
  /// In digits of base32: 40 bits. RFC 4226 wants 128, and some services give 80.
  static let shortestKey = 8
  /// Of a key for Steam's codes, as Bitwarden has it.
  private static let steamScheme = "steam://"

  /// The URI that is stored. A key alone is for codes of RFC 6238 as most services have them: SHA1, six digits, 30 seconds.
  ///
  /// - Throws: `invalidValue` with the reason, also for a URI that no code can be computed from; `outOfMemory`.
  public static func uri(
    of text: borrowing SecretBytes, issuer: String, account: String
  ) throws(StoreError) -> SecretBytes {
    let trimmed = text.span.extracting(trimmedRange(text.span))
    var uri: SecretBytes
    if trimmed.begins(with: KeyURI.scheme) {
      uri = try copy(trimmed)
    } else {
      let isSteam = trimmed.begins(with: steamScheme)
      let key = isSteam ? trimmed.extracting(steamScheme.utf8.count...) : trimmed
      uri = try Self.uri(ofKey: key, issuer: issuer, account: account)
      if isSteam { try append("&encoder=steam", to: &uri) }
    }
    do throws(StoreError) { _ = try CodeGenerator(uri) } catch { throw error.asInvalid }
    return uri
  }

  private static func uri(
    ofKey key: Span<UInt8>, issuer: String, account: String
  ) throws(StoreError) -> SecretBytes {
    let name = KeyURI.escaped(issuer)
    let label = name.isEmpty ? KeyURI.escaped(account) : "\(name):\(KeyURI.escaped(account))"
    var uri = try copy(Array("\(KeyURI.scheme)totp/\(label)?secret=".utf8).span)
    let count = try appendDigits(of: key, to: &uri)
    guard count >= shortestKey else {
      throw .invalidValue(
        reason: "the key is too short: \(count) of at least \(shortestKey) characters of base32")
    }
    if !name.isEmpty { try append("&issuer=\(name)", to: &uri) }
    return uri
  }

  /// Services show keys in groups, and some with `=` at the end.
  private static func appendDigits(of key: Span<UInt8>, to uri: inout SecretBytes) throws(StoreError) -> Int {
    var (count, isPadded) = (0, false)
    for index in key.indices {
      let byte = key[index]
      if byte == UInt8(ascii: " ") || byte == UInt8(ascii: "-") { continue }
      if byte == UInt8(ascii: "=") {
        isPadded = true
        continue
      }
      guard let value = Base32.value(byte), !isPadded else {
        throw .invalidValue(
          reason:
            "neither an otpauth:// URI nor a key in base32, which has the letters A to Z and the digits 2 to 7"
        )
      }
      let digit = value < 26 ? UInt8(ascii: "A") + value : UInt8(ascii: "2") + value - 26
      try append(digit, to: &uri)
      count += 1
    }
    return count
  }

  private static func trimmedRange(_ text: Span<UInt8>) -> Range<Int> {
    let isBlank = { (byte: UInt8) in byte == 0x20 || (0x09...0x0D).contains(byte) }
    var (start, end) = (0, text.count)
    while start < end, isBlank(text[start]) { start += 1 }
    while end > start, isBlank(text[end - 1]) { end -= 1 }
    return start..<end
  }

  private static func copy(_ bytes: Span<UInt8>) throws(StoreError) -> SecretBytes {
    do { return try SecretBytes(copying: bytes) } catch { throw .outOfMemory }
  }

  private static func append(_ byte: UInt8, to uri: inout SecretBytes) throws(StoreError) {
    do {
      try uri.resize(to: uri.count + 1)
      uri[uri.count - 1] = byte
    } catch { throw .outOfMemory }
  }

  private static func append(_ text: String, to uri: inout SecretBytes) throws(StoreError) {
    do { try uri.append(Array(text.utf8).span) } catch { throw .outOfMemory }
  }
}

extension Span<UInt8> {
  /// Without a difference between capitals and small letters.
  fileprivate func begins(with text: String) -> Bool {
    let start = Array(text.utf8)
    guard count >= start.count else { return false }
    return start.indices.allSatisfy { self[$0] | 0x20 == start[$0] | 0x20 }
  }
}

extension StoreError {
  /// Of what was just written, instead of what is stored.
  fileprivate var asInvalid: StoreError {
    if case .unsupported(let reason) = self { return .invalidValue(reason: reason) }
    return self
  }
}
