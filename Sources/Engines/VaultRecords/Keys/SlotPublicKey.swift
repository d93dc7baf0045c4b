import Crypto
import FoundationEssentials
import Model
import SecretMemory

/// The public key of a slot: a new master key can be sealed to it while its private key is elsewhere.
///
/// HPKE (RFC 9180) in base mode with DHKEM(X25519, HKDF-SHA256), HKDF-SHA256 and AES-256-GCM. The bytes are the
/// number of the KEM in HPKE's registry (2) and the key.
package struct SlotPublicKey {
  /// DHKEM(X25519, HKDF-SHA256), the only one that this version knows.
  private static let x25519: UInt16 = 0x0020
  private static let suite = HPKE.Ciphersuite(
    kem: .Curve25519_HKDF_SHA256, kdf: .HKDF_SHA256, aead: .AES_GCM_256)
  /// The encapsulated key, in bytes.
  private static let encapsulatedLength = 32

  let key: Curve25519.KeyAgreement.PublicKey

  init(_ key: Curve25519.KeyAgreement.PublicKey) {
    self.key = key
  }

  /// - Throws: `damaged`, also for another KEM.
  init(_ bytes: [UInt8]) throws(StoreError) {
    guard bytes.count == 34, bytes[0] == 0, bytes[1] == UInt8(Self.x25519),
      let key = try? Curve25519.KeyAgreement.PublicKey(rawRepresentation: bytes.dropFirst(2))
    else { throw .damaged(what: "a key slot") }
    self.key = key
  }

  var bytes: [UInt8] { [0, UInt8(Self.x25519)] + Array(key.rawRepresentation) }

  /// The encapsulated key and the sealed keys.
  func seal(_ keys: [SymmetricKey], boundTo binding: [UInt8]) throws -> [UInt8] {
    var sender = try HPKE.Sender(recipientKey: key, ciphersuite: Self.suite, info: Data(binding))
    var content = try SecretBytes()
    for key in keys { try key.append(to: &content) }
    let sealed = try content.span.withBorrowedData { try sender.seal($0) }
    return Array(sender.encapsulatedKey + sealed)
  }

  /// The master key, and the passcode key where there is one. - Throws: `damaged`.
  static func open(
    _ sealed: [UInt8], _ privateKey: Curve25519.KeyAgreement.PrivateKey, boundTo binding: [UInt8]
  ) throws(StoreError) -> MasterKeys {
    do {
      var recipient = try HPKE.Recipient(
        privateKey: privateKey, ciphersuite: suite, info: Data(binding),
        encapsulatedKey: Data(sealed.prefix(encapsulatedLength)))
      var keys = try recipient.open(sealed.dropFirst(encapsulatedLength))
      defer { wipe(&keys) }
      guard keys.count == 32 || keys.count == 64 else { throw StoreError.damaged(what: "key") }
      return MasterKeys(
        master: SymmetricKey(data: keys.prefix(32)),
        passcode: keys.count == 64 ? SymmetricKey(data: keys.suffix(32)) : nil)
    } catch {
      throw .damaged(what: "a key slot")
    }
  }
}
