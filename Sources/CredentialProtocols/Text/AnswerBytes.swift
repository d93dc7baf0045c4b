package import Formats
package import SecretMemory

/// The bytes of an answer, put together in memory for secrets.
package enum AnswerBytes {
  private final class Collection {
    var bytes: SecretBytes

    init() throws(FormatError) {
      do throws(SecretMemoryError) { bytes = try SecretBytes() } catch { throw FormatError(error) }
    }

    func append(_ piece: Span<UInt8>) throws(FormatError) {
      do throws(SecretMemoryError) { try bytes.append(piece) } catch { throw FormatError(error) }
    }
  }

  /// The bytes that `body` writes.
  ///
  /// - Throws: `FormatError` without memory for secrets, and what `body` throws.
  package static func make(
    _ body: (ByteSink) throws(FormatError) -> Void
  ) throws(FormatError) -> SecretBytes {
    let collection = try Collection()
    let sink = try ByteSink { (piece) throws(FormatError) in try collection.append(piece) }
    try body(sink)
    try sink.flush()
    var taken: SecretBytes
    do throws(SecretMemoryError) { taken = try SecretBytes() } catch { throw FormatError(error) }
    swap(&taken, &collection.bytes)
    return taken
  }
}

extension ByteSink {
  /// Writes a string of JSON with its quotes.
  func writeJSON(_ text: String) throws(FormatError) {
    try write("\"")
    try JSONText.write(text, to: self)
    try write("\"")
  }

  /// Writes a secret as a string of JSON with its quotes.
  ///
  /// - Throws: `FormatError` for a secret that is not UTF-8: JSON can't hold it.
  func writeJSON(_ secret: Span<UInt8>) throws(FormatError) {
    guard secret.isText else { throw FormatError("the secret is not UTF-8, which JSON can't hold") }
    try write("\"")
    try JSONText.write(secret, to: self)
    try write("\"")
  }
}
