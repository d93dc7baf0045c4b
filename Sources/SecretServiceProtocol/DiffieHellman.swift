internal import CGcrypt
package import SecretMemory

/// A key exchange over the second Oakley group (RFC 2409, section 6.2), for one session.
///
/// The private key and the shared secret are in libgcrypt's locked memory, and of each key there is one exponentiation with a
/// number that another program chooses.
@safe package final class DiffieHellman {
  /// The length of a number of the group, in bytes.
  package static let length = 128

  private let prime: Number
  private let secret: Number

  /// Makes a key.
  ///
  /// - Throws: `ProtocolError` without libgcrypt or locked memory.
  package convenience init() throws(ProtocolError) {
    var key: SecretBytes
    do { key = try SecretBytes(count: Self.length) } catch { throw .noMemory }
    try CryptoLibrary.load()
    unsafe key.withUnsafeMutableBytes {
      unsafe gcry_randomize($0.baseAddress, $0.count, GCRY_STRONG_RANDOM)
    }
    // Below the prime, which has all bits of its first 64 set.
    key[0] &= 0x7F
    try self.init(key: key)
  }

  /// Takes a given key, less than the prime, its most significant byte first.
  package init(key: borrowing SecretBytes) throws(ProtocolError) {
    try CryptoLibrary.load()
    prime = try Number.number(Self.prime)
    secret = try unsafe key.withUnsafeBytes { (bytes) throws(ProtocolError) in
      try unsafe Number(bytes, isSecret: true)
    }
  }

  /// The public key, 128 bytes.
  package func publicKey() throws(ProtocolError) -> [UInt8] {
    let key = try power(of: .number([2])).bytes()
    return key.unprotected
  }

  /// The secret that both sides share: 128 bytes, with zeros before a shorter number.
  ///
  /// - Throws: `ProtocolError` for a number that is no public key of the group, or that would tell the secret.
  package func sharedSecret(with publicKey: [UInt8]) throws(ProtocolError) -> SecretBytes {
    guard publicKey.count <= 2 * Self.length else { throw .badKey }
    let other = try Number.number(publicKey)
    let last = Number()
    unsafe gcry_mpi_sub_ui(last.pointer, prime.pointer, 1)
    guard unsafe gcry_mpi_cmp_ui(other.pointer, 1) > 0, unsafe gcry_mpi_cmp(other.pointer, last.pointer) < 0
    else { throw .badKey }
    return try power(of: other).bytes()
  }

  private func power(of base: Number) -> Number {
    let result = Number(isSecret: true)
    unsafe gcry_mpi_powm(result.pointer, base.pointer, secret.pointer, prime.pointer)
    return result
  }

  /// RFC 2409, section 6.2.
  private static let prime: [UInt8] = [
    "FFFFFFFFFFFFFFFFC90FDAA22168C234C4C6628B80DC1CD129024E088A67CC74020BBEA63B139B22514A08798E3404DD",
    "EF9519B3CD3A431B302B0A6DF25F14374FE1356D6D51C245E485B576625E7EC6F44C42E9A637ED6B0BFF5CB6F406B7ED",
    "EE386BFB5A899FA5AE9F24117C4B1FE649286651ECE65381FFFFFFFFFFFFFFFF",
  ].joined().hexadecimalBytes
}

/// A number of libgcrypt's.
@safe private final class Number {
  let pointer: OpaquePointer?

  /// Zero.
  init(isSecret: Bool = false) {
    unsafe pointer = isSecret ? gcry_mpi_snew(1024) : gcry_mpi_new(1024)
  }

  init(_ bytes: UnsafeRawBufferPointer, isSecret: Bool) throws(ProtocolError) {
    var made: gcry_mpi_t?
    guard unsafe gcry_mpi_scan(&made, GCRYMPI_FMT_USG, bytes.baseAddress, bytes.count, nil) == 0 else {
      throw .badKey
    }
    unsafe pointer = unsafe made
    if isSecret { unsafe gcry_mpi_set_flag(pointer, GCRYMPI_FLAG_SECURE) }
  }

  static func number(_ bytes: [UInt8]) throws(ProtocolError) -> Number {
    try unsafe bytes.span.withUnsafeBytes { (bytes) throws(ProtocolError) in
      try unsafe Number(bytes, isSecret: false)
    }
  }

  deinit { unsafe gcry_mpi_release(pointer) }

  /// Its bytes, the most significant first, with zeros before them.
  func bytes() throws(ProtocolError) -> SecretBytes {
    var bytes: SecretBytes
    do { bytes = try SecretBytes(count: DiffieHellman.length) } catch { throw .noMemory }
    var count = 0
    let result = unsafe bytes.withUnsafeMutableBytes { bytes in
      unsafe gcry_mpi_print(
        GCRYMPI_FMT_USG, bytes.baseAddress?.assumingMemoryBound(to: UInt8.self), bytes.count, &count, pointer)
    }
    guard result == 0 else { throw .badKey }
    let missing = DiffieHellman.length - count
    guard missing > 0 else { return bytes }
    for index in (0..<count).reversed() { bytes[index + missing] = bytes[index] }
    for index in 0..<missing { bytes[index] = 0 }
    return bytes
  }
}

extension ProtocolError {
  fileprivate static let badKey = invalid("this is no public key of the group")
  static let noMemory = ProtocolError(
    "org.freedesktop.DBus.Error.NoMemory", "there is not enough locked memory")
}

extension String {
  fileprivate var hexadecimalBytes: [UInt8] {
    let digits = utf8.compactMap { Character(Unicode.Scalar($0)).hexDigitValue }
    return stride(from: 0, to: digits.count, by: 2).map { UInt8(digits[$0] << 4 | digits[$0 + 1]) }
  }
}
