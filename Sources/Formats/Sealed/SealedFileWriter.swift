import Crypto
import FoundationEssentials
public import SecretMemory

/// Seals a file while it is written. Without `finish` what was written opens as one that is cut off.
public final class SealedFileWriter {
  /// Takes the file's bytes, none of which is secret.
  public typealias Output = ([UInt8]) throws(FormatError) -> Void

  private let output: Output
  private let header: [UInt8]
  private let key: SymmetricKey
  private var piece: SecretBytes
  private var count = 0
  private var number: UInt64 = 0

  /// Writes the header of a file that a passphrase opens.
  ///
  /// `cost`: one of `SealedFile.passphraseCosts`; the standard one takes about half a second and 128 MiB of memory.
  ///
  /// - Throws: `FormatError` for an empty passphrase, without memory, and what `output` throws.
  public convenience init(
    _ kind: SealedFile.Kind, passphrase: borrowing SecretBytes, cost: UInt8 = SealedFile.standardCost,
    output: @escaping Output
  ) throws(FormatError) {
    try self.init(SealedFileKey.make(kind, passphrase: passphrase, cost: cost), output)
  }

  /// Writes the header of a file that the private half of `publicKey` opens.
  ///
  /// Any holder of the public key can write such a file: that it opens does not say where it came from.
  public convenience init(
    _ kind: SealedFile.Kind, publicKey: [UInt8], output: @escaping Output
  ) throws(FormatError) {
    try self.init(SealedFileKey.make(kind, publicKey: publicKey), output)
  }

  private init(
    _ made: (key: SealedFileKey, header: [UInt8]), _ output: @escaping Output
  ) throws(FormatError) {
    self.output = output
    (key, header) = (made.key.key, made.header)
    do throws(SecretMemoryError) { piece = try SecretBytes(count: SealedFile.pieceSize) } catch {
      throw FormatError(error)
    }
    try output(header)
  }

  /// Adds bytes to the content.
  public func write(_ bytes: Span<UInt8>) throws(FormatError) {
    var written = 0
    while written < bytes.count {
      if count == SealedFile.pieceSize { try flush(isLast: false) }
      let part = bytes.extracting(written..<min(bytes.count, written + SealedFile.pieceSize - count))
      do throws(SecretMemoryError) { try piece.write(part, at: count) } catch { throw FormatError(error) }
      count += part.count
      written += part.count
    }
  }

  /// Opens what was written, without the passphrase or the private key: to check it. `header`: as it is in the file.
  ///
  /// - Throws: `FormatError` where that is not the header that was written.
  public func opener(of header: SealedFileHeader) throws(FormatError) -> SealedFileOpener {
    guard header.bytes == self.header else { throw FormatError("the sealed file is damaged") }
    return SealedFileOpener(header, PieceSeal(key: key, header: self.header))
  }

  /// Writes the last piece. Nothing can be added after it.
  public func finish() throws(FormatError) {
    try flush(isLast: true)
  }

  private func flush(isLast: Bool) throws(FormatError) {
    let seal = PieceSeal(key: key, header: header)
    let sealed = try piece.withSpan(0..<count) { (bytes) throws(FormatError) in
      try seal.seal(bytes, number: number, isLast: isLast)
    }
    number += 1
    count = 0
    try output(sealed)
  }
}

/// AES-256-GCM of one piece: the nonce is three zero bytes, the piece's number and whether it is the last.
struct PieceSeal: Sendable {
  let key: SymmetricKey
  let header: [UInt8]

  func seal(
    _ bytes: Span<UInt8>, number: UInt64, isLast: Bool
  ) throws(FormatError) -> [UInt8] {
    defer { wipeStack() }
    do {
      let box = try bytes.withBorrowedData {
        try AES.GCM.seal($0, using: key, nonce: nonce(number, isLast), authenticating: header)
      }
      return Array(box.ciphertext) + Array(box.tag)
    } catch {
      throw FormatError("it can't be sealed")
    }
  }

  /// - Throws: `FormatError` where the piece is not this one of this file.
  func open(_ sealed: [UInt8], number: UInt64, isLast: Bool) throws(FormatError) -> SecretBytes {
    defer { wipeStack() }
    guard sealed.count >= SealedFile.tagSize else { throw FormatError("the sealed file is cut off") }
    var opened: Data
    do {
      let box = try AES.GCM.SealedBox(
        nonce: nonce(number, isLast), ciphertext: sealed.dropLast(SealedFile.tagSize),
        tag: sealed.suffix(SealedFile.tagSize))
      opened = try AES.GCM.open(box, using: key, authenticating: header)
    } catch {
      throw FormatError(
        number == 0
          ? "the passphrase or key is wrong, or the sealed file is damaged" : "the sealed file is damaged")
    }
    return try SealedFile.secret(&opened)
  }

  private func nonce(_ number: UInt64, _ isLast: Bool) throws -> AES.GCM.Nonce {
    let count = (0..<8).map { UInt8(truncatingIfNeeded: number >> (56 - 8 * UInt64($0))) }
    return try AES.GCM.Nonce(data: [0, 0, 0] + count + [isLast ? 1 : 0])
  }
}
