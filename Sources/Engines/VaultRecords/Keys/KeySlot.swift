package import Crypto
import FoundationEssentials
import Model
import SecretMemory

/// One way to the master key: a row of the slot table.
package struct KeySlot: Equatable {
  /// The numbers of the format; those without a source yet are reserved.
  package enum Kind: UInt64 {
    case passphrase = 1
    case keyFile = 2
    case passphraseAndKeyFile = 3
    case secretService = 4
    /// With a public key, as the following.
    case systemCredential = 5
    case recoveryCode = 6
    case device = 7

    package var takesPassphrase: Bool { self == .passphrase || self == .passphraseAndKeyFile }
    package var hasPublicKey: Bool { self == .recoveryCode || self == .systemCredential || self == .device }
    /// Whether its secret stands for the passphrase, so that it opens the class `whenPasscodeSetThisDeviceOnly` too.
    var holdsPasscodeKey: Bool { takesPassphrase || self == .recoveryCode || self == .systemCredential }
  }

  package var id: UInt64
  package var kind: UInt64
  package var parameters: [UInt8]
  /// Empty: a new master key is sealed to the slot with its secret only. See `SlotPublicKey`.
  package var publicKey: [UInt8] = []
  /// Tells a wrong key: AES-GCM alone would not. Empty where there is a public key, which tells it.
  package var commitment: [UInt8] = []
  package var sealed: [UInt8] = []
  /// Tells a damaged slot from a wrong key; it holds no secret.
  package var checksum: [UInt8] = []

  package var takesPassphrase: Bool { Kind(rawValue: kind)?.takesPassphrase ?? false }

  package var takesKeyFile: Bool {
    kind == Kind.keyFile.rawValue || kind == Kind.passphraseAndKeyFile.rawValue
  }

  /// A slot as it is stored.
  package init(
    id: UInt64, kind: UInt64, parameters: [UInt8], publicKey: [UInt8], commitment: [UInt8], sealed: [UInt8],
    checksum: [UInt8]
  ) {
    (self.id, self.kind, self.parameters) = (id, kind, parameters)
    (self.publicKey, self.commitment) = (publicKey, commitment)
    (self.sealed, self.checksum) = (sealed, checksum)
  }

  /// A new slot of the newest format.
  package init(
    id: UInt64, _ source: borrowing some KeySource & ~Copyable, _ keys: MasterKeys, _ header: VaultHeader
  ) throws {
    (self.id, kind, parameters) = (id, source.kind.rawValue, source.makeParameters())
    let input = try source.input(parameters)
    commitment = input.key(info: binding(.commitment, header)).array
    let content = [keys.master] + (takesPassphrase ? [keys.passcode].compactMap { $0 } : [])
    let key = input.key(info: binding(.slot, header))
    sealed = try Array(Cipher.seal(keys: content, under: key, boundTo: binding(.slot, header)))
    checksum = currentChecksum(header.format)
  }

  /// A new slot that is sealed to a public key.
  package init(
    id: UInt64, _ kind: Kind, parameters: [UInt8], _ publicKey: SlotPublicKey, _ keys: MasterKeys,
    _ header: VaultHeader
  ) throws {
    (self.id, self.kind, self.parameters) = (id, kind.rawValue, parameters)
    self.publicKey = publicKey.bytes
    try reseal(keys, header)
  }

  /// Seals another master key to the slot's public key, which takes no secret. The caller has made sure that the slot is the
  /// one of the manifest: one that another program has put there would get the key.
  ///
  /// - Throws: `damaged`.
  package mutating func reseal(_ keys: MasterKeys, _ header: VaultHeader) throws {
    let recipient = try SlotPublicKey(publicKey)
    let passcode = Kind(rawValue: kind)?.holdsPasscodeKey == true ? keys.passcode : nil
    sealed = try recipient.seal([keys.master] + [passcode].compactMap { $0 }, boundTo: binding(.slot, header))
    checksum = currentChecksum(header.format)
  }

  /// The keys in the slot; nil: the slot is whole and `source` is not its key. - Throws: `damaged`.
  package func open(
    _ source: borrowing some KeySource & ~Copyable, _ header: VaultHeader
  ) throws -> MasterKeys? {
    try checkIsWhole(header)
    let input = try source.input(parameters)
    let key = input.key(info: binding(.slot, header))
    guard isCommitment(of: key, input, header) else { return nil }
    let count = header.format >= .two && takesPassphrase ? 2 : 1
    let keys = try Cipher.openKeys(sealed, count, under: key, boundTo: binding(.slot, header))
    return MasterKeys(master: keys[0], passcode: count == 2 ? keys[1] : nil)
  }

  /// The keys in a slot with a public key; nil: the slot is whole and the private key is another one's.
  package func open(
    _ privateKey: Curve25519.KeyAgreement.PrivateKey, _ header: VaultHeader
  ) throws -> MasterKeys? {
    try checkIsWhole(header)
    guard SlotPublicKey(privateKey.publicKey).bytes == publicKey else { return nil }
    return try SlotPublicKey.open(sealed, privateKey, boundTo: binding(.slot, header))
  }
}

extension KeySlot {
  /// The whole table as fields, for the manifest's digest.
  package static func fields(of slots: [KeySlot]) -> FieldWriter {
    var writer = FieldWriter(capacity: 512)
    writer.put(raw: "slot".utf8)
    for slot in slots {
      slot.put(.two, into: &writer)
      writer.put(7, slot.checksum)
    }
    return writer
  }

  private func binding(_ purpose: Binding.Purpose, _ header: VaultHeader) -> [UInt8] {
    Binding.slot(purpose, header.format, store: header.store, self).bytes
  }

  private func checkIsWhole(_ header: VaultHeader) throws(StoreError) {
    guard checksum == currentChecksum(header.format) else { throw .damaged(what: "a key slot") }
  }

  private func isCommitment(
    of key: SymmetricKey, _ input: borrowing KeyInput, _ header: VaultHeader
  ) -> Bool {
    guard header.format == .one else {
      // Compares in constant time.
      return SymmetricKey(data: commitment) == input.key(info: binding(.commitment, header))
    }
    return HMAC<SHA256>.isValidAuthenticationCode(
      commitment, authenticating: header.format.info("commit"), using: key)
  }

  private func put(_ format: VaultFormat, into writer: inout FieldWriter) {
    writer.put(1, id)
    writer.put(2, kind)
    writer.put(3, parameters)
    writer.put(4, commitment)
    writer.put(5, sealed)
    if format >= .two { writer.put(6, publicKey) }
  }

  private func currentChecksum(_ format: VaultFormat) -> [UInt8] {
    var writer = FieldWriter(capacity: 256)
    put(format, into: &writer)
    return Array(SHA256.hash(data: writer.bytes).prefix(8))
  }
}
