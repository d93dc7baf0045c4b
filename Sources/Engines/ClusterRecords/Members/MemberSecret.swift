package import Crypto
import FoundationEssentials
package import Model
import Platform
package import SecretMemory
package import VaultRecords

/// The private keys of a member: a device, or a recovery code.
///
/// Both are derived from 64 secret bytes: an X-Wing key (ML-KEM-768 and X25519), to which master keys are sealed, and an Ed25519
/// key, which signs.
package final class MemberSecret: Sendable {
  /// In bytes: the seeds of the two keys.
  package static let length = 64

  package let id: ItemKey
  package let kind: MemberKind
  private let bytes: SecretBytes

  /// - Throws: `damaged` for another number of bytes.
  package init(id: ItemKey, kind: MemberKind = .device, _ bytes: consuming SecretBytes) throws(StoreError) {
    guard bytes.count == Self.length else { throw .damaged(what: "the key of a device") }
    (self.id, self.kind) = (id, kind)
    self.bytes = bytes
  }

  /// A new device. - Throws: `outOfMemory`.
  package static func random() throws(StoreError) -> MemberSecret {
    do {
      var bytes = try SecretBytes()
      for _ in 0..<2 { try SymmetricKey(size: .bits256).append(to: &bytes) }
      return try MemberSecret(id: .random(), bytes)
    } catch { throw StoreError(cluster: error) }
  }

  /// The keys that a recovery code opens: HKDF of its 128 random bits, without scrypt, as 2¹²⁸ guesses can't be made.
  package convenience init(_ code: SlotSecret, of store: ItemKey) throws(StoreError) {
    do {
      var input = try KeyInput(salt: store.bytes)
      try input.append(code.bytes)
      var bytes = try SecretBytes()
      for name in ["recovery/kem", "recovery/sign"] {
        try input.key(info: ClusterFormat.info(name)).append(to: &bytes)
      }
      let id = Array(
        HMAC<SHA256>.authenticationCode(
          for: store.bytes, using: input.key(info: ClusterFormat.info("recovery/id"))
        ).prefix(16))
      try self.init(id: try ItemKey(id.span).orDamaged(), kind: .recoveryCode, bytes)
    } catch { throw StoreError(cluster: error) }
  }

  /// Lends the seeds.
  package func withBytes<Result>(
    _ body: (borrowing SecretBytes) throws(StoreError) -> Result
  ) throws(StoreError) -> Result {
    try body(bytes)
  }

  private func kem() throws -> XWingMLKEM768X25519.PrivateKey {
    try bytes.withSpan(0..<32) { seed in
      try seed.withBorrowedData { try XWingMLKEM768X25519.PrivateKey(seedRepresentation: $0, publicKey: nil) }
    }
  }

  private func signing() throws -> Curve25519.Signing.PrivateKey {
    try bytes.withSpan(32..<64) { seed in
      try seed.withBorrowedData { try Curve25519.Signing.PrivateKey(rawRepresentation: $0) }
    }
  }

  /// The keys that everyone may know. - Throws: `damaged`.
  package func publicKeys() throws(StoreError) -> MemberKeys {
    do {
      return MemberKeys(
        id: id, kind: kind, kem: Array(try kem().publicKey.rawRepresentation),
        signing: Array(try signing().publicKey.rawRepresentation))
    } catch { throw StoreError(cluster: error) }
  }

  /// 64 bytes: Ed25519 (RFC 8032). - Throws: `damaged`.
  package func sign(_ bytes: [UInt8]) throws(StoreError) -> [UInt8] {
    do { return Array(try signing().signature(for: bytes)) } catch { throw StoreError(cluster: error) }
  }

  /// A key of this member's own, for what it keeps on its disk. - Throws: `outOfMemory`.
  package func localKey(_ name: String, _ store: ItemKey) throws(StoreError) -> SymmetricKey {
    do {
      var input = try KeyInput(salt: store.bytes)
      try input.append(bytes)
      return input.key(info: ClusterFormat.info(name))
    } catch { throw StoreError(cluster: error) }
  }

  /// Opens what `MemberKeys.seal` sealed. - Throws: `damaged`.
  package func open(_ sealed: [UInt8], boundTo binding: [UInt8]) throws(StoreError) -> SymmetricKey {
    do {
      var recipient = try HPKE.Recipient(
        privateKey: try kem(), ciphersuite: MemberKeys.suite, info: Data(binding),
        encapsulatedKey: Data(sealed.prefix(MemberKeys.encapsulatedLength)))
      var key = try recipient.open(Data(sealed.dropFirst(MemberKeys.encapsulatedLength)))
      defer { wipe(&key) }
      guard key.count == 32 else { throw StoreError.damaged(what: "a slot") }
      return SymmetricKey(data: key)
    } catch {
      throw .damaged(what: "the slot of a device")
    }
  }
}

/// The kind of a member; other numbers are reserved.
package enum MemberKind: UInt8, Sendable {
  case device = 1
  case recoveryCode = 2
}

/// The public keys of a member.
package struct MemberKeys: Hashable, Sendable {
  static let suite = HPKE.Ciphersuite(kem: .XWingMLKEM768X25519, kdf: .HKDF_SHA256, aead: .AES_GCM_256)
  /// The encapsulated key, in bytes.
  static let encapsulatedLength = 1120

  package var id: ItemKey
  package var kind: MemberKind
  /// X-Wing, 1216 bytes.
  package var kem: [UInt8]
  /// Ed25519, 32 bytes.
  package var signing: [UInt8]

  package init(id: ItemKey, kind: MemberKind, kem: [UInt8], signing: [UInt8]) {
    (self.id, self.kind, self.kem, self.signing) = (id, kind, kem, signing)
  }

  private enum Tag {
    static let id: UInt8 = 1
    static let kind: UInt8 = 2
    static let kem: UInt8 = 3
    static let signing: UInt8 = 4
  }

  package var encoded: [UInt8] {
    var writer = FieldWriter(capacity: 1300)
    writer.put(Tag.id, id)
    writer.put(Tag.kind, kind.rawValue)
    writer.put(Tag.kem, kem)
    writer.put(Tag.signing, signing)
    return writer.bytes
  }

  /// - Throws: `damaged`.
  package init(_ bytes: Span<UInt8>) throws(StoreError) {
    var (id, kind): (ItemKey?, MemberKind?) = (nil, nil)
    (kem, signing) = ([], [])
    var reader = FieldReader(bytes)
    while let field = try reader.next() {
      switch field.tag {
      case Tag.id: id = ItemKey(field.bytes)
      case Tag.kind: kind = MemberKind(rawValue: try field.integer(UInt8.self))
      case Tag.kem: kem = field.bytes.array
      case Tag.signing: signing = field.bytes.array
      default: throw .damaged(what: "the keys of a member")
      }
    }
    (self.id, self.kind) = (try id.orDamaged(), try kind.orDamaged())
    guard kem.count == 1216, signing.count == 32 else { throw .damaged(what: "the keys of a member") }
  }

  /// Whether the member has signed these bytes.
  package func verify(_ signature: [UInt8], of bytes: [UInt8]) -> Bool {
    guard let key = try? Curve25519.Signing.PublicKey(rawRepresentation: signing) else { return false }
    return key.isValidSignature(signature, for: bytes)
  }

  /// Seals a master key to the member: HPKE (RFC 9180) in base mode with X-Wing, HKDF-SHA256 and AES-256-GCM.
  ///
  /// - Throws: `damaged` for keys that are none.
  package func seal(_ master: SymmetricKey, boundTo binding: [UInt8]) throws(StoreError) -> [UInt8] {
    do {
      let key = try XWingMLKEM768X25519.PublicKey(rawRepresentation: kem)
      var sender = try HPKE.Sender(recipientKey: key, ciphersuite: Self.suite, info: Data(binding))
      let sealed = try master.withBytes { try $0.withBorrowedData { try sender.seal($0) } }
      return Array(sender.encapsulatedKey) + Array(sealed)
    } catch { throw .damaged(what: "the keys of a member") }
  }
}
