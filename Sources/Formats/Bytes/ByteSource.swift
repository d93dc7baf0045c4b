import Platform
public import SecretMemory

/// Input as bytes that leave no copy: memory for secrets, or pieces that are fetched one at a time.
///
/// A source is used by one thread at a time. A piece that can't be fetched reads as zero bytes, and `check` throws why.
public final class ByteSource {
  /// Fetches a piece by its number: `pieceSize` bytes, but for the last one.
  public typealias Load = (Int) throws(FormatError) -> SecretBytes

  /// The number of bytes, of all pieces.
  public let count: Int
  private let pieceSize: Int
  private let load: Load?
  private var piece: SecretBytes
  /// Where `piece` lies in the source.
  private var range: Range<Int>
  private var failure: FormatError?

  /// A source in memory.
  public init(_ bytes: consuming SecretBytes) {
    count = bytes.count
    pieceSize = max(1, bytes.count)
    range = 0..<bytes.count
    piece = bytes
    load = nil
  }

  /// `count` bytes in pieces of `pieceSize`, of which one is in memory at a time.
  public init(count: Int, pieceSize: Int, load: @escaping Load) throws(FormatError) {
    self.count = max(0, count)
    self.pieceSize = max(1, pieceSize)
    self.load = load
    range = 0..<0
    do throws(SecretMemoryError) { piece = try SecretBytes() } catch { throw FormatError(error) }
  }

  /// The range of all bytes.
  public var whole: Range<Int> { 0..<count }

  /// - Throws: why a piece could not be fetched, and what was read of it is not to be believed.
  public func check() throws(FormatError) {
    if let failure { throw failure }
  }

  /// A byte of the source. An index beyond its end reads as 0.
  public subscript(index: Int) -> UInt8 {
    if !range.contains(index) {
      fetch(index)
      guard range.contains(index) else { return 0 }
    }
    return piece[index - range.lowerBound]
  }

  /// Lends a part, in one piece or in several.
  package func forEachChunk(
    _ part: Range<Int>, _ body: (Span<UInt8>) throws(FormatError) -> Void
  ) throws(FormatError) {
    var start = part.lowerBound
    while start < part.upperBound {
      if !range.contains(start) { fetch(start) }
      guard range.contains(start) else { throw failure ?? FormatError("it is cut off at byte \(start)") }
      let end = min(part.upperBound, range.upperBound)
      try piece.withSpan((start - range.lowerBound)..<(end - range.lowerBound), body)
      start = end
    }
  }

  /// A part that is no secret: a name, an attribute, a setting. What lies beyond the end is left out.
  public func bytes(_ part: Range<Int>) -> [UInt8] {
    var bytes: [UInt8] = []
    try? forEachChunk(part) { (chunk) throws(FormatError) in bytes += chunk.array }
    return bytes
  }

  /// nil: it is not UTF-8.
  package func text(_ part: Range<Int>) -> String? { String(validating: bytes(part), as: UTF8.self) }

  package func starts(_ text: String, at index: Int = 0) -> Bool {
    starts(Array(text.utf8), at: index)
  }

  package func starts(_ prefix: [UInt8], at index: Int = 0) -> Bool {
    guard index >= 0, index <= count, count - index >= prefix.count else { return false }
    return prefix.indices.allSatisfy { self[index + $0] == prefix[$0] }
  }

  private func fetch(_ index: Int) {
    guard let load, index >= 0, index < count else { return }
    let number = index / pieceSize
    let start = number * pieceSize
    do throws(FormatError) {
      let new = try load(number)
      guard new.count == min(pieceSize, count - start) else { throw FormatError("it is cut off") }
      range = start..<(start + new.count)
      piece = new
    } catch {
      failure = failure ?? error
    }
  }
}

/// Numbers in ASCII digits without a sign, as files of other programs have them.
enum Digits {
  /// nil: there is another character, no digit, or the number is beyond `Int`.
  static func number(_ digits: some Collection<UInt8>, radix: Int = 10) -> Int? {
    guard !digits.isEmpty else { return nil }
    var number = 0
    for digit in digits {
      guard let value = value(digit), value < radix else { return nil }
      let (product, isTooLarge) = number.multipliedReportingOverflow(by: radix)
      let (sum, overflows) = product.addingReportingOverflow(value)
      guard !isTooLarge, !overflows else { return nil }
      number = sum
    }
    return number
  }

  private static func value(_ digit: UInt8) -> Int? {
    switch digit {
    case 0x30...0x39: Int(digit - 0x30)
    case 0x41...0x46: Int(digit - 0x41) + 10
    case 0x61...0x66: Int(digit - 0x61) + 10
    default: nil
    }
  }
}
