import Platform
import SecretMemory

/// Bytes in memory for secrets that are written one after the other.
struct SecretWriter: ~Copyable {
  private var bytes: SecretBytes
  private(set) var count = 0
  private let limit: Int

  init(capacity: Int, limit: Int = ViewLimits.bytes) throws(ViewError) {
    self.limit = limit
    do throws(SecretMemoryError) { bytes = try SecretBytes(count: max(64, min(capacity, limit))) } catch {
      throw ViewError(error)
    }
  }

  static func tooLong(_ limit: Int) -> ViewError {
    ViewError(.EFBIG, "a view has at most \(limit) bytes")
  }

  mutating func append(_ byte: UInt8) throws(ViewError) {
    if count == bytes.count { try reserve(count + 1) }
    bytes[count] = byte
    count += 1
  }

  mutating func append(_ text: StaticString) throws(ViewError) {
    for byte in text.description.utf8 { try append(byte) }
  }

  mutating func append(_ other: [UInt8]) throws(ViewError) {
    for byte in other { try append(byte) }
  }

  mutating func append(_ other: Span<UInt8>) throws(ViewError) {
    try reserve(count + other.count)
    let start = count
    count += other.count
    var target = bytes.mutableSpan
    target.copy(other, at: start)
  }

  mutating func append(_ other: borrowing SecretBytes, _ range: Range<Int>) throws(ViewError) {
    try append(other.span.extracting(range))
  }

  /// Forgets what comes after the first `count` bytes.
  mutating func truncate(to count: Int) {
    self.count = min(count, self.count)
  }

  borrowing func hasSameBytes(as other: borrowing SecretBytes, _ range: Range<Int>) -> Bool {
    bytes.span.extracting(0..<count).isEqual(to: other.span.extracting(range))
  }

  /// Lends what was written from an offset on.
  borrowing func withWritten<Result>(
    from start: Int, _ body: (Span<UInt8>) throws(ViewError) -> Result
  ) throws(ViewError) -> Result {
    try bytes.withSpan(min(start, count)..<count, body)
  }

  /// A copy of what was written from an offset on.
  borrowing func copy(from start: Int) throws(ViewError) -> SecretBytes {
    do throws(SecretMemoryError) {
      return try SecretBytes(copying: bytes.span.extracting(min(start, count)..<count))
    } catch { throw ViewError(error) }
  }

  consuming func finish() -> SecretBytes {
    // Shorter than it is: that can't fail.
    try? bytes.resize(to: count)
    return bytes
  }

  private mutating func reserve(_ needed: Int) throws(ViewError) {
    guard needed > bytes.count else { return }
    guard needed <= limit else { throw Self.tooLong(limit) }
    do throws(SecretMemoryError) { try bytes.resize(to: min(limit, max(needed, 2 &* bytes.count))) } catch {
      throw ViewError(error)
    }
  }
}

extension Span<UInt8> {
  /// Compares in a time that depends on the lengths only.
  func isEqual(to other: Span<UInt8>) -> Bool {
    guard count == other.count else { return false }
    var difference: UInt8 = 0
    for index in indices { difference |= self[index] ^ other[index] }
    return difference == 0
  }
}

extension SecretBytes {
  static func copy(of other: borrowing SecretBytes) throws(ViewError) -> SecretBytes {
    do throws(SecretMemoryError) { return try SecretBytes(copying: other) } catch { throw ViewError(error) }
  }

  borrowing func hasSameBytes(as other: Span<UInt8>) -> Bool { span.isEqual(to: other) }
}
