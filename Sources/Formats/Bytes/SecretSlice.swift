public import SecretMemory

/// A secret as it stands in a source, decoded only when it is asked for, into memory for secrets.
public struct SecretSlice {
  /// How the secret stands in the source.
  public enum Coding: Sendable {
    case plain
    /// The text between the quotes of a JSON string.
    case json
    case base64
    /// Base 64 of a gzip file (RFC 1952), as KeePass keeps attachments.
    case gzippedBase64
    /// Character data of XML.
    case xml
    /// A field of CSV between quotes, where two stand for one.
    case csv
    /// A value of an environment file, its quotes and escapes included.
    case environment
    /// The bare key of one-time codes, which decodes to an `otpauth:` URI.
    indirect case oneTimeKey(Coding, OneTimeKey)
  }

  /// A secret decodes to so many bytes at most, whatever a compressed one claims.
  public static let longest = 64 << 20

  package let source: ByteSource
  package let range: Range<Int>
  package let coding: Coding

  /// - Parameters:
  ///   - source: the input; it is kept.
  ///   - range: where the secret stands in it.
  ///   - coding: how it stands there.
  public init(_ source: ByteSource, _ range: Range<Int>, _ coding: Coding = .plain) {
    self.source = source
    self.range = range
    self.coding = coding
  }

  /// Whether it has no bytes, before and after decoding.
  public var isEmpty: Bool { range.isEmpty }

  /// - Throws: `FormatError` where it is not coded as it should be, is cut off, or there is no memory.
  public func bytes() throws(FormatError) -> SecretBytes {
    var decoded = try DecodedSecret()
    switch coding {
    case .plain: try decoded.append(source, range)
    case .json: try JSONText.decode(source, range, into: &decoded)
    case .base64: try Base64Text.decode(source, range, into: &decoded)
    case .gzippedBase64:
      var packed = try DecodedSecret()
      try Base64Text.decode(source, range, into: &packed)
      try Inflater.gunzip(packed.finish(), into: &decoded)
    case .xml: try XMLCharacters.decode(source, range, into: &decoded)
    case .csv: try decodeQuotes(into: &decoded)
    case .environment: try EnvironmentText.decode(source, range, into: &decoded)
    case .oneTimeKey(let coding, let key):
      try key.decode(SecretSlice(source, range, coding), into: &decoded)
    }
    try source.check()
    return decoded.finish()
  }

  /// Text that is no secret: a name, a note.
  package func text() throws(FormatError) -> String {
    let bytes = try bytes()
    guard let text = String(validating: bytes.unprotected, as: UTF8.self) else {
      throw FormatError("a name is not UTF-8 at byte \(range.lowerBound)")
    }
    return text
  }

  private func decodeQuotes(into decoded: inout DecodedSecret) throws(FormatError) {
    var index = range.lowerBound
    while index < range.upperBound {
      try decoded.append(source[index])
      index += source[index] == UInt8(ascii: "\"") ? 2 : 1
    }
  }
}

/// Bytes of a secret that come one by one.
struct DecodedSecret: ~Copyable {
  private var bytes: SecretBytes
  private(set) var count = 0

  init() throws(FormatError) {
    do throws(SecretMemoryError) { bytes = try SecretBytes(count: 256) } catch { throw FormatError(error) }
  }

  mutating func append(_ byte: UInt8) throws(FormatError) {
    if count == bytes.count { try resize(to: 2 * count) }
    bytes[count] = byte
    count += 1
  }

  mutating func append(_ source: ByteSource, _ range: Range<Int>) throws(FormatError) {
    let end = count + range.count
    if end > bytes.count { try resize(to: end) }
    try source.forEachChunk(range) { (chunk) throws(FormatError) in
      do throws(SecretMemoryError) { try bytes.write(chunk, at: count) } catch {
        throw FormatError(error)
      }
      count += chunk.count
    }
  }

  mutating func append(_ scalar: Unicode.Scalar) throws(FormatError) {
    for byte in UTF8.encode(scalar).map(Array.init) ?? [] { try append(byte) }
  }

  /// The byte that was appended `distance` bytes before the next one; nil: there is none.
  func last(_ distance: Int) -> UInt8? {
    guard distance > 0, distance <= count else { return nil }
    return bytes[count - distance]
  }

  consuming func finish() -> SecretBytes {
    // Smaller than it is: that can't fail.
    try? bytes.resize(to: count)
    return bytes
  }

  private mutating func resize(to size: Int) throws(FormatError) {
    guard size <= SecretSlice.longest else { throw FormatError("a value is larger than 64 MiB") }
    do throws(SecretMemoryError) { try bytes.resize(to: size) } catch { throw FormatError(error) }
  }
}
