public import Formats
import Platform
public import SecretMemory

/// Where an export goes: a descriptor, as it is or sealed.
public struct ExportFile {
  /// Takes the content; it is sealed piece by piece, or written as it is.
  public let sink: ByteSink
  private let sealed: SealedFileWriter?

  /// Writes what `sink` gets to a descriptor, readable for all who can read that.
  public init(_ descriptor: Int32) throws(FormatError) {
    sealed = nil
    sink = try ByteSink { (bytes) throws(FormatError) in try write(bytes, to: descriptor) }
  }

  /// Seals what `sink` gets under a passphrase. `cost`: one of `SealedFile.passphraseCosts`.
  public init(
    _ descriptor: Int32, sealedTo passphrase: borrowing SecretBytes, cost: UInt8
  ) throws(FormatError) {
    let writer = try SealedFileWriter(.export, passphrase: passphrase, cost: cost) {
      (bytes) throws(FormatError) in
      try write(bytes.span, to: descriptor)
    }
    sealed = writer
    sink = try ByteSink { (bytes) throws(FormatError) in try writer.write(bytes) }
  }

  /// Writes what is left; without it, a sealed export is known to be cut off.
  public func finish() throws(FormatError) {
    try sink.flush()
    try sealed?.finish()
  }
}

/// write(2) until all is written, to a descriptor that the caller owns.
private func write(_ bytes: Span<UInt8>, to descriptor: Int32) throws(FormatError) {
  do { try Files.write(bytes, to: descriptor) } catch { throw FormatError("it can't be written: \(error)") }
}
