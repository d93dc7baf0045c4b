import SecretMemory

/// Takes what is written, and gives it on in pieces from memory for secrets.
public final class ByteSink {
  /// Takes the next piece.
  public typealias Output = (Span<UInt8>) throws(FormatError) -> Void

  private static let pieceSize = 8 * 1024

  private let output: Output
  private var piece: SecretBytes
  private var count = 0

  /// - Throws: `FormatError` without memory for secrets.
  public init(_ output: @escaping Output) throws(FormatError) {
    self.output = output
    do throws(SecretMemoryError) { piece = try SecretBytes(count: Self.pieceSize) } catch {
      throw FormatError(error)
    }
  }

  package func write(_ byte: UInt8) throws(FormatError) {
    if count == Self.pieceSize { try flush() }
    piece[count] = byte
    count += 1
  }

  package func write(_ bytes: Span<UInt8>) throws(FormatError) {
    for index in bytes.indices { try write(bytes[index]) }
  }

  package func write(_ text: String) throws(FormatError) {
    for byte in text.utf8 { try write(byte) }
  }

  package func write(_ bytes: some Sequence<UInt8>) throws(FormatError) {
    for byte in bytes { try write(byte) }
  }

  /// Gives on what is left.
  public func flush() throws(FormatError) {
    try piece.withSpan(0..<count, output)
    count = 0
  }
}
