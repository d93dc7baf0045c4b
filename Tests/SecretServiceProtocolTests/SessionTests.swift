import SecretMemory
import SecretServiceProtocol
import Testing

struct SessionTests {
  private func secret(_ bytes: [UInt8]) throws -> SecretBytes { try SecretBytes(copying: bytes.span) }

  /// RFC 2409's group with small private keys: 2 to the power of 1 and of 2.
  @Test func publicKeyIsAPowerOfTwo() throws {
    for (exponent, last) in [(1, 2), (5, 32)] as [(UInt8, UInt8)] {
      let key = try DiffieHellman(key: secret([exponent]))
      let expected = [UInt8](repeating: 0, count: 127) + [last]
      #expect(try key.publicKey() == expected)
    }
  }

  @Test func bothSidesShareASecret() throws {
    let (one, other) = (try DiffieHellman(), try DiffieHellman())
    let first = try one.sharedSecret(with: other.publicKey())
    let second = try other.sharedSecret(with: one.publicKey())
    #expect(first.unprotected == second.unprotected)
    #expect(first.count == DiffieHellman.length)
  }

  /// 0, 1, the prime less one, the prime, and what is longer.
  @Test func numbersThatAreNoPublicKeyAreRefused() throws {
    let key = try DiffieHellman()
    let prime = Self.prime
    var less = prime
    less[127] -= 1
    for bytes in [[], [0], [1], less, prime, [UInt8](repeating: 0xFF, count: 300)] {
      #expect(throws: ProtocolError.self) { _ = try key.sharedSecret(with: bytes) }
    }
  }

  /// HKDF-SHA-256 of 128 zero bytes, as Python's cryptography computes it.
  @Test func keyIsDerivedAsTheDraftSays() throws {
    let key = try SessionKey(sharedSecret: SecretBytes(count: 128))
    let cipher = SessionCipher.encrypted(key)
    let iv = try SecretBytes(count: 16)
    let value = try secret(Self.encryptedText)
    let text = try cipher.decode(parameters: iv, value: value)
    #expect(text.unprotected == Array("keyhole".utf8))
  }

  @Test(arguments: [0, 1, 15, 16, 17, 1000])
  func secretsComeBack(_ length: Int) throws {
    let cipher = SessionCipher.encrypted(try SessionKey(sharedSecret: SecretBytes(count: 128)))
    let bytes = (0..<length).map { UInt8(truncatingIfNeeded: $0) }
    let message = try cipher.encode(secret(bytes))
    #expect(message.parameters.count == 16)
    #expect(message.value.count == length / 16 * 16 + 16)
    let back = try cipher.decode(parameters: secret(message.parameters), value: message.value)
    #expect(back.unprotected == bytes)
  }

  @Test func twoMessagesOfOneSecretDiffer() throws {
    let cipher = SessionCipher.encrypted(try SessionKey(sharedSecret: SecretBytes(count: 128)))
    let one = try cipher.encode(secret([1]))
    let other = try cipher.encode(secret([1]))
    #expect(one.parameters != other.parameters)
    #expect(one.value.unprotected != other.value.unprotected)
  }

  @Test func damagedMessagesAreRefused() throws {
    let cipher = SessionCipher.encrypted(try SessionKey(sharedSecret: SecretBytes(count: 128)))
    let message = try cipher.encode(secret(Array("0123456789abcdef".utf8)))
    let iv = message.parameters
    for (parameters, value) in [(iv, []), (iv, [0]), ([], message.value.unprotected), ([0], [])]
      as [([UInt8], [UInt8])]
    {
      #expect(throws: ProtocolError.self) {
        _ = try cipher.decode(parameters: secret(parameters), value: secret(value))
      }
    }
  }

  /// `keyhole` under the derived key and a vector of zeros, by OpenSSL.
  private static let encryptedText: [UInt8] = [
    0x84, 0x3E, 0x28, 0xBC, 0x24, 0xCE, 0x46, 0x03, 0x63, 0xD6, 0x70, 0xA4,
    0x7E, 0x88, 0xDC, 0xD6,
  ]

  private static let prime: [UInt8] = {
    let digits = Array(
      ("FFFFFFFFFFFFFFFFC90FDAA22168C234C4C6628B80DC1CD129024E088A67CC74020BBEA63B139B22514A08798E3404DD"
        + "EF9519B3CD3A431B302B0A6DF25F14374FE1356D6D51C245E485B576625E7EC6F44C42E9A637ED6B0BFF5CB6F406B7ED"
        + "EE386BFB5A899FA5AE9F24117C4B1FE649286651ECE65381FFFFFFFFFFFFFFFF").utf8)
    return stride(from: 0, to: digits.count, by: 2).compactMap {
      UInt8(String(decoding: digits[$0..<$0 + 2], as: UTF8.self), radix: 16)
    }
  }()
}
