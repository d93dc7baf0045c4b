public import Formats
import Glibc
public import SecretMemory

/// Where an export goes: a descriptor, as it is or sealed.
public struct ExportFile {
  /// Takes the content; it is sealed piece by piece, or written as it is.
  public let sink: ByteSink
  private let sealed: SealedFileWriter?

  /// Writes what `sink` gets to a descriptor, readable for all who can read that.
  public init(_ descriptor: Int32) throws(FormatError) {
    sealed = nil
    sink = try unsafe ByteSink { (bytes) throws(FormatError) in try unsafe write(bytes, to: descriptor) }
  }

  /// Seals what `sink` gets under a passphrase.
  public init(_ descriptor: Int32, sealedTo passphrase: borrowing SecretBytes) throws(FormatError) {
    let writer = try SealedFileWriter(.export, passphrase: passphrase) { (bytes) throws(FormatError) in
      try write(bytes, to: descriptor)
    }
    sealed = writer
    sink = try unsafe ByteSink { (bytes) throws(FormatError) in try unsafe writer.write(bytes) }
  }

  /// Writes what is left; without it, a sealed export is known to be cut off.
  public func finish() throws(FormatError) {
    try sink.flush()
    try sealed?.finish()
  }
}

private func write(_ bytes: [UInt8], to descriptor: Int32) throws(FormatError) {
  var position = 0
  while position < bytes.count {
    let rest = bytes[position...]
    // SAFETY: the buffer says how long it is.
    let count = unsafe rest.withUnsafeBytes { unsafe Glibc.write(descriptor, $0.baseAddress, $0.count) }
    guard count > 0 || errno == EINTR else {
      throw FormatError("it can't be written: \(systemMessage(errno))")
    }
    position += max(count, 0)
  }
}

private func write(_ bytes: UnsafeRawBufferPointer, to descriptor: Int32) throws(FormatError) {
  var rest = unsafe bytes[...]
  while unsafe !rest.isEmpty {
    // SAFETY: the slice says how long it is.
    let count = unsafe Glibc.write(descriptor, UnsafeRawBufferPointer(rebasing: rest).baseAddress, rest.count)
    guard count > 0 || errno == EINTR else {
      throw FormatError("it can't be written: \(systemMessage(errno))")
    }
    unsafe rest = unsafe rest.dropFirst(max(count, 0))
  }
}
