public import SecretMemory

/// A secret as it stands in a source, decoded only when it is asked for, into memory for secrets.
public struct Passage: Sendable {
  enum Coding: Sendable {
    case plain
    /// What stands between the quotes of a JSON string.
    case json
    case base64
    /// Character data of XML.
    case xml
    /// A field of CSV between quotes, where two stand for one.
    case csv
    /// A value of an environment file, its quotes and escapes included.
    case environment
  }

  let source: Source
  let range: Range<Int>
  let coding: Coding

  init(_ source: Source, _ range: Range<Int>, _ coding: Coding = .plain) {
    self.source = source
    self.range = range
    self.coding = coding
  }

  public var isEmpty: Bool { range.isEmpty }

  /// - Throws: `TransferError` where it is not coded as it should be.
  public func bytes() throws(TransferError) -> SecretBytes {
    var decoded = try Decoded()
    switch coding {
    case .plain: try decoded.append(source, range)
    case .json: try JSONText.decode(source, range, into: &decoded)
    case .base64: try Base64Text.decode(source, range, into: &decoded)
    case .xml: try XMLCharacters.decode(source, range, into: &decoded)
    case .csv: try decodeQuotes(into: &decoded)
    case .environment: try EnvironmentText.decode(source, range, into: &decoded)
    }
    return decoded.finish()
  }

  /// What is no secret: a name, a note.
  func text() throws(TransferError) -> String {
    let bytes = try bytes()
    guard let text = unsafe bytes.withUnsafeBytes({ unsafe String(validating: $0, as: UTF8.self) }) else {
      throw TransferError("a name is not UTF-8")
    }
    return text
  }

  private func decodeQuotes(into decoded: inout Decoded) throws(TransferError) {
    var index = range.lowerBound
    while index < range.upperBound {
      try decoded.append(source[index])
      index += source[index] == UInt8(ascii: "\"") ? 2 : 1
    }
  }
}

/// Bytes of a secret that come one by one.
struct Decoded: ~Copyable {
  private var bytes: SecretBytes
  private var count = 0

  init() throws(TransferError) {
    do throws(SecretMemoryError) { bytes = try SecretBytes(count: 256) } catch { throw TransferError(error) }
  }

  mutating func append(_ byte: UInt8) throws(TransferError) {
    if count == bytes.count { try resize(to: 2 * count) }
    unsafe bytes.withUnsafeMutableBytes { unsafe $0[count] = byte }
    count += 1
  }

  mutating func append(_ source: Source, _ range: Range<Int>) throws(TransferError) {
    if count + range.count > bytes.count { try resize(to: count + range.count) }
    unsafe source.withUnsafeBytes(range) { part in
      unsafe bytes.withUnsafeMutableBytes { bytes in
        unsafe UnsafeMutableRawBufferPointer(rebasing: bytes[count..<(count + part.count)]).copyMemory(
          from: part)
      }
    }
    count += range.count
  }

  mutating func append(_ scalar: Unicode.Scalar) throws(TransferError) {
    for byte in UTF8.encode(scalar).map(Array.init) ?? [] { try append(byte) }
  }

  consuming func finish() -> SecretBytes {
    // Smaller than it is: that can't fail.
    try? bytes.resize(to: count)
    return bytes
  }

  private mutating func resize(to size: Int) throws(TransferError) {
    do throws(SecretMemoryError) { try bytes.resize(to: size) } catch { throw TransferError(error) }
  }
}

enum Base64Text {
  private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)

  /// With white space anywhere between.
  static func decode(_ source: Source, _ range: Range<Int>, into decoded: inout Decoded) throws(TransferError)
  {
    var (bits, count, padding): (UInt32, Int, Int) = (0, 0, 0)
    for index in range {
      let byte = source[index]
      if byte == 0x20 || (0x09...0x0D).contains(byte) { continue }
      if byte == UInt8(ascii: "=") {
        padding += 1
        continue
      }
      guard padding == 0, let value = alphabet.firstIndex(of: byte) else {
        throw TransferError("data that is not base 64")
      }
      bits = bits << 6 | UInt32(value)
      count += 1
      // Eight bits more than were given out.
      if count % 4 != 1 {
        try decoded.append(UInt8(truncatingIfNeeded: bits >> [2: 4, 3: 2, 0: 0][count % 4, default: 0]))
      }
    }
    guard count % 4 != 1 else { throw TransferError("data that is not base 64") }
  }

  static func write(_ bytes: some RandomAccessCollection<UInt8>, to sink: Sink) throws(TransferError) {
    var index = 0
    while index < bytes.count {
      let part = (0..<3).map {
        index + $0 < bytes.count ? UInt32(bytes[bytes.index(bytes.startIndex, offsetBy: index + $0)]) : 0
      }
      let bits = part[0] << 16 | part[1] << 8 | part[2]
      for place in 0..<4 {
        let isPadding = index + place > bytes.count
        try sink.write(isPadding ? UInt8(ascii: "=") : alphabet[Int(bits >> (18 - 6 * place)) & 63])
      }
      index += 3
    }
  }
}
