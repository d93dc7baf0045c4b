import Crypto
import CryptoExtras
import FoundationEssentials
import SecretMemory

/// The key of a sealed file's pieces, and its commitment.
///
/// The output of scrypt or HPKE (RFC 9180, DHKEM(X25519, HKDF-SHA256), exported secret) goes through HKDF-SHA256 with the
/// header as salt into 64 bytes: the key and the commitment. A file that opens under two passphrases would take a
/// collision of SHA-256.
struct SealedFileKey: Sendable {
  let key: SymmetricKey
  let commitment: [UInt8]

  private static let suite = HPKE.Ciphersuite.Curve25519_SHA256_ChachaPoly
  private static let info = Data("keyhole sealed file 2".utf8)

  private init(_ material: SymmetricKey, boundTo header: some Collection<UInt8>) {
    let derived = HKDF<SHA256>.deriveKey(
      inputKeyMaterial: material, salt: Array(header), info: Self.info, outputByteCount: 64)
    defer { wipeStack() }
    (key, commitment) = unsafe derived.withUnsafeBytes { bytes in
      // SAFETY: there are 64 bytes.
      unsafe (SymmetricKey(data: UnsafeRawBufferPointer(rebasing: bytes[..<32])), Array(bytes[32...]))
    }
  }

  // MARK: Sealing

  static func make(
    _ kind: SealedFile.Kind, passphrase: borrowing SecretBytes, cost: UInt8
  ) throws(FormatError) -> (SealedFileKey, header: [UInt8]) {
    guard SealedFile.passphraseCosts.contains(cost) else {
      throw FormatError("no file of this cost would open")
    }
    let recipient = SealedFileHeader.Recipient.passphrase(logN: cost, salt: randomSalt())
    let header = SealedFileHeader.unbound(kind, recipient)
    let key = SealedFileKey(try scrypt(passphrase, recipient), boundTo: header)
    return (key, header + key.commitment)
  }

  static func make(
    _ kind: SealedFile.Kind, publicKey: [UInt8]
  ) throws(FormatError) -> (SealedFileKey, header: [UInt8]) {
    defer { wipeStack() }
    do {
      let recipient = try Curve25519.KeyAgreement.PublicKey(rawRepresentation: publicKey)
      let sender = try HPKE.Sender(recipientKey: recipient, ciphersuite: suite, info: info)
      let header = SealedFileHeader.unbound(
        kind, .publicKey(publicKey, encapsulated: Array(sender.encapsulatedKey)))
      let key = SealedFileKey(
        try sender.exportSecret(context: Self.info, outputByteCount: 32), boundTo: header)
      return (key, header + key.commitment)
    } catch {
      throw FormatError("the public key can't be used")
    }
  }

  private static func randomSalt() -> [UInt8] {
    var random = SystemRandomNumberGenerator()
    return (0..<SealedFileHeader.saltSize).map { _ in random.next() }
  }

  // MARK: Opening

  /// The key that a passphrase makes.
  ///
  /// - Throws: `FormatError` for a wrong passphrase, which version 1 finds out at the first piece only.
  static func open(
    _ header: SealedFileHeader, passphrase: borrowing SecretBytes
  ) throws(FormatError) -> SymmetricKey {
    let material = try scrypt(passphrase, header.recipient)
    guard header.version > 1 else { return material }
    return try checked(SealedFileKey(material, boundTo: header.boundBytes), header, "the passphrase is wrong")
  }

  static func open(
    _ header: SealedFileHeader, privateKey: borrowing SecretBytes
  ) throws(FormatError) -> SymmetricKey {
    guard case .publicKey(let publicKey, let encapsulated) = header.recipient else {
      throw FormatError("it is sealed to a passphrase, not to a key")
    }
    defer { wipeStack() }
    let mine = try agreementKey(privateKey)
    let reason = "it is sealed to another key"
    guard publicKey.elementsEqual(mine.publicKey.rawRepresentation) else { throw FormatError(reason) }
    let material: SymmetricKey
    do {
      let recipient = try HPKE.Recipient(
        privateKey: mine, ciphersuite: suite, info: info, encapsulatedKey: Data(encapsulated))
      material = try recipient.exportSecret(context: Self.info, outputByteCount: 32)
    } catch {
      throw FormatError("\(reason), or damaged")
    }
    return try checked(SealedFileKey(material, boundTo: header.boundBytes), header, reason)
  }

  private static func checked(
    _ key: SealedFileKey, _ header: SealedFileHeader, _ reason: String
  ) throws(FormatError) -> SymmetricKey {
    let difference = zip(key.commitment, header.commitment).reduce(UInt8(0)) { $0 | ($1.0 ^ $1.1) }
    guard difference == 0, key.commitment.count == header.commitment.count else {
      throw FormatError("\(reason), or the sealed file is damaged")
    }
    return key.key
  }

  static func agreementKey(
    _ privateKey: borrowing SecretBytes
  ) throws(FormatError) -> Curve25519.KeyAgreement.PrivateKey {
    do {
      return try privateKey.span.withBorrowedData {
        try Curve25519.KeyAgreement.PrivateKey(rawRepresentation: $0)
      }
    } catch {
      throw FormatError("the private key is not \(SealedFile.keySize) bytes")
    }
  }

  private static func scrypt(
    _ passphrase: borrowing SecretBytes, _ recipient: SealedFileHeader.Recipient
  ) throws(FormatError) -> SymmetricKey {
    guard case .passphrase(let logN, let salt) = recipient else {
      throw FormatError("it is sealed to a key, not to a passphrase")
    }
    guard !passphrase.isEmpty else { throw FormatError("the passphrase is empty") }
    defer { wipeStack() }
    do {
      return try passphrase.span.withBorrowedData {
        try KDF.Scrypt.deriveKey(
          from: $0, salt: salt, outputByteCount: 32, rounds: 1 << Int(logN), blockSize: 8, parallelism: 1)
      }
    } catch {
      throw FormatError("there is not enough memory to make a key of the passphrase")
    }
  }
}
