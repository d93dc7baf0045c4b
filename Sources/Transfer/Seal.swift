import Crypto
import CryptoExtras
import FoundationEssentials
import SecretMemory

/// An export under a passphrase: `Documentation/FORMATS.md`, “Sealed exports”.
///
/// `KHEXPORT`, version 1, log2 N, r, p, 16 bytes of salt; then pieces of 64 KiB, each AES-256-GCM under the key
/// that scrypt makes of the passphrase. The nonce counts the pieces and marks the last one, so that none can
/// be cut off, moved or repeated; the header is authenticated with each.
struct Seal {
  static let magic = Array("KHEXPORT".utf8)
  static let headerSize = 28
  private static let tagSize = 16
  private static let logN: UInt8 = 17

  let header: [UInt8]
  private let key: SymmetricKey
  private var counter: UInt64 = 0

  /// nil where there is no passphrase.
  init?(making passphrase: borrowing SecretBytes?) throws(TransferError) {
    var salt = [UInt8](repeating: 0, count: 16)
    var random = SystemRandomNumberGenerator()
    for index in salt.indices { salt[index] = random.next() }
    let header = Self.magic + [1, Self.logN, 8, 1] + salt
    switch passphrase {
    case .some(let passphrase):
      self.header = header
      key = try Self.key(passphrase, header)
    case .none: return nil
    }
  }

  private init(opening source: Source, _ passphrase: borrowing SecretBytes) throws(TransferError) {
    guard source.count >= Self.headerSize else { throw TransferError("the sealed export is cut off") }
    header = source.bytes(0..<Self.headerSize)
    guard header[8] == 1 else { throw TransferError("a newer Keyhole made this export") }
    // What the file says is not trusted: it could ask for any amount of memory.
    guard (14...20).contains(header[9]), header[10] == 8, header[11] == 1 else {
      throw TransferError("the sealed export is damaged")
    }
    key = try Self.key(passphrase, header)
  }

  static func isSealed(_ source: Source) -> Bool { source.starts("KHEXPORT") }

  /// - Throws: `TransferError` for a wrong passphrase, which can't be told from a damaged file.
  static func open(_ source: Source, _ passphrase: borrowing SecretBytes) throws(TransferError) -> Source {
    var seal = try Seal(opening: source, passphrase)
    var plain = try Decoded()
    var position = headerSize
    let whole = Sink.pieceSize + tagSize
    while true {
      let isLast = source.count - position <= whole
      let end = isLast ? source.count : position + whole
      try seal.open(source, position..<end, isLast: isLast, into: &plain)
      position = end
      if isLast { return Source(plain.finish()) }
    }
  }

  mutating func seal(_ bytes: UnsafeRawBufferPointer, isLast: Bool) throws(TransferError) -> [UInt8] {
    defer { counter += 1 }
    // SAFETY: the Data is read only, by a call that returns before the bytes go.
    let borrowed = unsafe bytes.baseAddress.map {
      unsafe Data(bytesNoCopy: UnsafeMutableRawPointer(mutating: $0), count: bytes.count, deallocator: .none)
    }
    do {
      let box = try AES.GCM.seal(
        borrowed ?? Data(), using: key, nonce: nonce(isLast), authenticating: header)
      return Array(box.ciphertext) + Array(box.tag)
    } catch {
      throw TransferError("it can't be sealed")
    }
  }

  private mutating func open(
    _ source: Source, _ range: Range<Int>, isLast: Bool, into plain: inout Decoded
  ) throws(TransferError) {
    defer {
      counter += 1
      wipeStack()
    }
    guard range.count >= Self.tagSize else { throw TransferError("the sealed export is cut off") }
    let (text, tag) = (source.bytes(range.dropLast(Self.tagSize)), source.bytes(range.suffix(Self.tagSize)))
    do {
      let box = try AES.GCM.SealedBox(nonce: nonce(isLast), ciphertext: text, tag: tag)
      var opened = try AES.GCM.open(box, using: key, authenticating: header)
      defer { unsafe opened.withUnsafeMutableBytes { unsafe wipe($0) } }
      for byte in opened { try plain.append(byte) }
    } catch let error as TransferError {
      throw error
    } catch {
      throw TransferError("the passphrase is wrong, or the sealed export is damaged")
    }
  }

  private func nonce(_ isLast: Bool) throws -> AES.GCM.Nonce {
    let count = (0..<8).map { UInt8(truncatingIfNeeded: counter >> (56 - 8 * UInt64($0))) }
    return try AES.GCM.Nonce(data: [0, 0, 0] + count + [isLast ? 1 : 0])
  }

  private static func key(_ passphrase: borrowing SecretBytes, _ header: [UInt8]) throws(TransferError)
    -> SymmetricKey
  {
    guard !passphrase.isEmpty else { throw TransferError("the passphrase is empty") }
    defer { wipeStack() }
    return try unsafe passphrase.withUnsafeBytes { bytes throws(TransferError) in
      guard let base = bytes.baseAddress else { throw TransferError("the passphrase is empty") }
      // SAFETY: as above.
      let borrowed = unsafe Data(
        bytesNoCopy: UnsafeMutableRawPointer(mutating: base), count: bytes.count, deallocator: .none)
      do {
        return try KDF.Scrypt.deriveKey(
          from: borrowed, salt: header.suffix(16), outputByteCount: 32, rounds: 1 << Int(header[9]),
          blockSize: 8,
          parallelism: 1)
      } catch {
        throw TransferError("there is not enough memory to make a key of the passphrase")
      }
    }
  }
}

extension Range<Int> {
  fileprivate func dropLast(_ count: Int) -> Range<Int> { lowerBound..<(upperBound - count) }
  fileprivate func suffix(_ count: Int) -> Range<Int> { (upperBound - count)..<upperBound }
}
