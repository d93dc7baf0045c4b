internal import CGcrypt
import Crypto
import FoundationEssentials
package import SecretMemory

/// The algorithm of a session, with its key.
package enum SessionCipher: Sendable {
  /// Secrets cross the bus as they are.
  case plain
  /// AES-128 in CBC mode with PKCS #7 padding, under a key of the session's own.
  case encrypted(SessionKey)

  /// The names of the algorithms, as `OpenSession` has them.
  package static let plainName = "plain"
  /// The same of the encrypted one.
  package static let encryptedName = "dh-ietf1024-sha256-aes128-cbc-pkcs7"
}

/// The key of a session.
package final class SessionKey: Sendable {
  static let length = 16
  let bytes: SecretBytes

  /// Takes a key of 16 bytes.
  package init(_ bytes: consuming SecretBytes) {
    self.bytes = bytes
  }

  /// The key that both sides derive from a shared secret: HKDF with SHA-256, without salt and information (RFC 5869).
  package convenience init(sharedSecret: borrowing SecretBytes) throws(ProtocolError) {
    let key = sharedSecret.span.withBorrowedData { data in
      HKDF<SHA256>.deriveKey(
        inputKeyMaterial: SymmetricKey(data: data), salt: Data(), info: Data(), outputByteCount: Self.length)
    }
    var bytes: SecretBytes
    do { bytes = try SecretBytes(count: Self.length) } catch { throw .noMemory }
    unsafe key.withUnsafeBytes { source in
      unsafe bytes.withUnsafeMutableBytes { unsafe $0.copyMemory(from: source) }
    }
    self.init(bytes)
  }
}

extension SessionCipher {
  /// A new session with the client's input of `OpenSession`, and the output for it.
  ///
  /// - Throws: `ProtocolError` for a number that is no public key.
  package static func negotiate(
    _ clientKey: [UInt8]
  ) throws(ProtocolError) -> (cipher: SessionCipher, output: [UInt8]) {
    let exchange = try DiffieHellman()
    let secret = try exchange.sharedSecret(with: clientKey)
    return (.encrypted(try SessionKey(sharedSecret: secret)), try exchange.publicKey())
  }

  /// A secret as it crosses the bus.
  package struct Message: ~Copyable, Sendable {
    /// The initialization vector; empty in a plain session.
    package let parameters: [UInt8]
    /// The encrypted bytes; in a plain session the secret itself.
    package let value: SecretBytes

    /// The value alone.
    package consuming func takeValue() -> SecretBytes { value }
  }

  /// Encrypts a secret under a new initialization vector.
  ///
  /// - Throws: `ProtocolError` without locked memory.
  package func encode(_ secret: borrowing SecretBytes) throws(ProtocolError) -> Message {
    var value: SecretBytes
    do { value = try SecretBytes(copying: secret) } catch { throw .noMemory }
    guard case .encrypted(let key) = self else { return Message(parameters: [], value: value) }
    try CryptoLibrary.load()
    let padding = SessionKey.length - secret.count % SessionKey.length
    do { try value.resize(to: secret.count + padding) } catch { throw .noMemory }
    for index in secret.count..<value.count { value[index] = UInt8(padding) }
    var vector = [UInt8](repeating: 0, count: SessionKey.length)
    unsafe vector.withUnsafeMutableBytes {
      unsafe gcry_randomize($0.baseAddress, $0.count, GCRY_STRONG_RANDOM)
    }
    try key.apply(to: &value, vector, isDecrypting: false)
    return Message(parameters: vector, value: value)
  }

  /// The secret of a message.
  ///
  /// - Throws: `ProtocolError` for a message that is none of this session's.
  package func decode(
    parameters: borrowing SecretBytes, value: borrowing SecretBytes
  ) throws(ProtocolError) -> SecretBytes {
    var secret: SecretBytes
    do { secret = try SecretBytes(copying: value) } catch { throw .noMemory }
    guard case .encrypted(let key) = self else { return secret }
    let length = SessionKey.length
    guard parameters.count == length, secret.count >= length, secret.count.isMultiple(of: length) else {
      throw .badSecret
    }
    try CryptoLibrary.load()
    try key.apply(to: &secret, parameters.unprotected, isDecrypting: true)
    let padding = Int(secret[secret.count - 1])
    guard (1...length).contains(padding) else { throw .badSecret }
    var difference: UInt8 = 0
    for index in (secret.count - padding)..<secret.count { difference |= secret[index] ^ UInt8(padding) }
    guard difference == 0 else { throw .badSecret }
    do { try secret.resize(to: secret.count - padding) } catch { throw .noMemory }
    return secret
  }
}

extension SessionKey {
  /// Encrypts or decrypts whole blocks in place.
  fileprivate func apply(
    to bytes: inout SecretBytes, _ vector: [UInt8], isDecrypting: Bool
  ) throws(ProtocolError) {
    var handle: gcry_cipher_hd_t?
    let flags = UInt32(GCRY_CIPHER_SECURE.rawValue)
    guard
      unsafe gcry_cipher_open(
        &handle, Int32(GCRY_CIPHER_AES.rawValue), Int32(GCRY_CIPHER_MODE_CBC.rawValue), flags) == 0
    else { throw .noMemory }
    defer { unsafe gcry_cipher_close(handle) }
    var result = unsafe self.bytes.withUnsafeBytes {
      unsafe gcry_cipher_setkey(handle, $0.baseAddress, $0.count)
    }
    if result == 0 {
      result = unsafe vector.withUnsafeBytes { unsafe gcry_cipher_setiv(handle, $0.baseAddress, $0.count) }
    }
    if result == 0 {
      result = unsafe bytes.withUnsafeMutableBytes { bytes in
        unsafe isDecrypting
          ? gcry_cipher_decrypt(handle, bytes.baseAddress, bytes.count, nil, 0)
          : gcry_cipher_encrypt(handle, bytes.baseAddress, bytes.count, nil, 0)
      }
    }
    guard result == 0 else { throw .badSecret }
  }
}

extension ProtocolError {
  fileprivate static let badSecret = invalid("the secret is not one of this session's")
}
