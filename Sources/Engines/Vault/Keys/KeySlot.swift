import Crypto
import FoundationEssentials
import GRDB
import Model
import SecretMemory

/// One way to the master key: a row of the slot table.
struct KeySlot: Equatable {
  /// The numbers of the format; those without a source yet are reserved.
  enum Kind: UInt64 {
    case passphrase = 1
    case keyFile = 2
    case passphraseAndKeyFile = 3
    case secretService = 4
    case systemCredential = 5
    /// With a public key, as the following.
    case recoveryCode = 6
    case device = 7

    var takesPassphrase: Bool { self == .passphrase || self == .passphraseAndKeyFile }
    var hasPublicKey: Bool { self == .recoveryCode || self == .device }
  }

  var id: UInt64
  var kind: UInt64
  var parameters: [UInt8]
  /// Empty: a new master key is sealed to the slot with its secret only. See `SlotPublicKey`.
  var publicKey: [UInt8] = []
  /// Tells a wrong key: AES-GCM alone would not. Empty where there is a public key, which tells it.
  var commitment: [UInt8] = []
  var sealed: [UInt8] = []
  /// Tells a damaged slot from a wrong key; it holds no secret.
  var checksum: [UInt8] = []

  var takesPassphrase: Bool { Kind(rawValue: kind)?.takesPassphrase ?? false }

  /// A new slot of the newest format.
  init(
    id: UInt64, _ source: borrowing some KeySource & ~Copyable, _ keys: MasterKeys, _ header: VaultHeader
  ) throws {
    (self.id, kind, parameters) = (id, source.kind.rawValue, source.makeParameters())
    let input = try source.input(parameters)
    commitment = Self.bytes(input.key(info: binding(.commitment, header)))
    let content = [keys.master] + (takesPassphrase ? [keys.passcode].compactMap { $0 } : [])
    let key = input.key(info: binding(.slot, header))
    sealed = try Array(Sealing.seal(keys: content, under: key, boundTo: binding(.slot, header)))
    checksum = currentChecksum(header.format)
  }

  /// A new slot that is sealed to a public key.
  init(
    id: UInt64, _ kind: Kind, parameters: [UInt8], _ publicKey: SlotPublicKey, _ keys: MasterKeys,
    _ header: VaultHeader
  ) throws {
    (self.id, self.kind, self.parameters) = (id, kind.rawValue, parameters)
    self.publicKey = publicKey.bytes
    try reseal(keys, header)
  }

  /// Seals another master key to the slot's public key, which takes no secret. - Throws: `damaged`.
  mutating func reseal(_ keys: MasterKeys, _ header: VaultHeader) throws {
    let recipient = try SlotPublicKey(publicKey)
    sealed = try recipient.seal(keys.master, boundTo: binding(.slot, header))
    checksum = currentChecksum(header.format)
  }

  /// The keys in the slot; nil: the slot is whole and `source` is not its key. - Throws: `damaged`.
  func open(_ source: borrowing some KeySource & ~Copyable, _ header: VaultHeader) throws -> MasterKeys? {
    try checkIsWhole(header)
    let input = try source.input(parameters)
    let key = input.key(info: binding(.slot, header))
    guard isCommitment(of: key, input, header) else { return nil }
    let count = header.format >= .two && takesPassphrase ? 2 : 1
    let keys = try Sealing.openKeys(sealed, count, under: key, boundTo: binding(.slot, header))
    return MasterKeys(master: keys[0], passcode: count == 2 ? keys[1] : nil)
  }

  /// The keys in a slot with a public key; nil: the slot is whole and the private key is another one's.
  func open(_ privateKey: Curve25519.KeyAgreement.PrivateKey, _ header: VaultHeader) throws -> MasterKeys? {
    try checkIsWhole(header)
    guard SlotPublicKey(privateKey.publicKey).bytes == publicKey else { return nil }
    let master = try SlotPublicKey.open(sealed, privateKey, boundTo: binding(.slot, header))
    return MasterKeys(master: master, passcode: nil)
  }
}

extension KeySlot {
  static func fetchAll(_ database: Database, _ format: VaultFormat) throws -> [KeySlot] {
    let publicKey = format == .one ? "x''" : "public"
    let query = try Query(
      database,
      "SELECT id, kind, parameters, \(publicKey), commitment, sealed, checksum FROM slot ORDER BY id")
    var slots: [KeySlot] = []
    while try query.step() { slots.append(KeySlot(query)) }
    return slots
  }

  /// Puts `slots` in the place of all that are there.
  static func replaceAll(with slots: [KeySlot], _ database: Database, _ format: VaultFormat) throws {
    try database.execute(sql: "DELETE FROM slot")
    for slot in slots { try slot.insert(database, format) }
  }

  func insert(_ database: Database, _ format: VaultFormat) throws {
    let query = try Query(
      database,
      "INSERT INTO slot (id, kind, parameters, public, commitment, sealed, checksum) "
        + "VALUES (?, ?, ?, ?, ?, ?, ?)")
    query.bind(1, id)
    query.bind(2, kind)
    query.bind(3, parameters)
    query.bind(4, publicKey)
    query.bind(5, commitment)
    query.bind(6, sealed)
    query.bind(7, checksum)
    try query.run()
  }

  /// The whole table as fields, for the manifest's digest.
  static func fields(of slots: [KeySlot]) -> FieldWriter {
    var writer = FieldWriter(capacity: 512)
    writer.put(raw: "slot".utf8)
    for slot in slots {
      slot.put(.two, into: &writer)
      writer.put(7, slot.checksum)
    }
    return writer
  }

  private init(_ query: borrowing Query) {
    id = query.integer(0)
    kind = query.integer(1)
    parameters = query.bytes(2)
    publicKey = query.bytes(3)
    commitment = query.bytes(4)
    sealed = query.bytes(5)
    checksum = query.bytes(6)
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

  private static func bytes(_ key: SymmetricKey) -> [UInt8] {
    key.array
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
