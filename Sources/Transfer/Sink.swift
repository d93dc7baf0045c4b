import Glibc
public import SecretMemory

/// Where an export goes: a descriptor, in pieces of 64 KiB, as they are or sealed.
public final class Sink {
  /// How many bytes are sealed together.
  static let pieceSize = 64 * 1024

  private let descriptor: Int32
  private var seal: Seal?
  private var piece: SecretBytes
  private var count = 0

  /// `passphrase`: nil leaves everything readable.
  public init(
    _ descriptor: Int32, passphrase: borrowing SecretBytes?
  ) throws(TransferError) {
    self.descriptor = descriptor
    do throws(SecretMemoryError) { piece = try SecretBytes(pinnable: Self.pieceSize) } catch {
      throw TransferError(error)
    }
    seal = try Seal(making: passphrase)
    if let header = seal?.header {
      try put(header)
    }
  }

  func write(_ byte: UInt8) throws(TransferError) {
    if count == Self.pieceSize { try flush(isLast: false) }
    unsafe piece.withUnsafeMutableBytes { unsafe $0[count] = byte }
    count += 1
  }

  func write(_ bytes: UnsafeRawBufferPointer) throws(TransferError) {
    for index in bytes.indices { try unsafe write(bytes[index]) }
  }

  func write(_ text: String) throws(TransferError) {
    for byte in text.utf8 { try write(byte) }
  }

  func write(_ bytes: [UInt8]) throws(TransferError) {
    for byte in bytes { try write(byte) }
  }

  /// Writes what is left; without it, an export is known to be cut off.
  public func finish() throws(TransferError) {
    try flush(isLast: true)
  }

  private func flush(isLast: Bool) throws(TransferError) {
    let count = count
    let sealed = try unsafe piece.withUnsafeBytes { bytes throws(TransferError) -> [UInt8]? in
      let part = unsafe UnsafeRawBufferPointer(rebasing: bytes[..<count])
      guard seal != nil else {
        try unsafe put(part)
        return nil
      }
      return try unsafe seal?.seal(part, isLast: isLast)
    }
    if let sealed {
      try put(sealed)
    }
    self.count = 0
  }

  private func put(_ bytes: [UInt8]) throws(TransferError) {
    let failure = unsafe bytes.withUnsafeBytes { bytes -> TransferError? in
      do throws(TransferError) { try unsafe put(bytes) } catch { return error }
      return nil
    }
    if let failure { throw failure }
  }

  private func put(_ bytes: UnsafeRawBufferPointer) throws(TransferError) {
    var rest = unsafe bytes[...]
    while unsafe !rest.isEmpty {
      // SAFETY: the slice says how long it is.
      let written = unsafe Glibc.write(
        descriptor, UnsafeRawBufferPointer(rebasing: rest).baseAddress, rest.count)
      guard written > 0 || errno == EINTR else {
        throw TransferError("it can't be written: \(TransferError.system(errno))")
      }
      unsafe rest = unsafe rest.dropFirst(max(written, 0))
    }
  }
}
