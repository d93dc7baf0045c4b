import Crypto
import FoundationEssentials
import GRDB
import Model
import SecretMemory

/// What opens a slot: a key file, a passphrase, both; a recovery code and others when they come.
protocol KeySource: ~Copyable {
  var kind: KeySlot.Kind { get }

  /// Parameters for a new slot: salts and costs.
  func makeParameters() -> [UInt8]

  /// The key of a slot with these parameters, which are hostile input. - Throws: `damaged`.
  func key(_ parameters: [UInt8], info: [UInt8]) throws -> SymmetricKey
}

/// The bytes of a key file.
struct KeyFileSource: KeySource, ~Copyable {
  static let length = 32
  private static let saltLength = 32

  let bytes: SecretBytes

  var kind: KeySlot.Kind { .keyFile }

  func makeParameters() -> [UInt8] {
    (0..<Self.saltLength).map { _ in UInt8.random(in: .min ... .max) }
  }

  func key(_ parameters: [UInt8], info: [UInt8]) throws -> SymmetricKey {
    guard parameters.count == Self.saltLength else { throw StoreError.damaged(what: "a key slot") }
    return unsafe bytes.withUnsafeBytes {
      HKDF<SHA256>.deriveKey(
        inputKeyMaterial: unsafe SymmetricKey(data: $0), salt: parameters, info: info, outputByteCount: 32)
    }
  }
}

/// A passphrase, alone or with a key file: then neither opens the slot without the other.
struct PassphraseSource: KeySource, ~Copyable {
  let passphrase: SecretBytes
  let keyFile: SecretBytes?
  /// What a new slot costs.
  var cost = PassphraseCost.standard

  var kind: KeySlot.Kind {
    switch keyFile {
    case .some: .passphraseAndKeyFile
    case .none: .passphrase
    }
  }

  func makeParameters() -> [UInt8] {
    PassphraseParameters(cost).bytes
  }

  func key(_ parameters: [UInt8], info: [UInt8]) throws -> SymmetricKey {
    let parameters = try PassphraseParameters(parameters)
    let derived = try parameters.derive(passphrase)
    var secret = try SecretBytes()
    try unsafe derived.withUnsafeBytes { try unsafe secret.append($0) }
    switch keyFile {
    case .some(let file): try unsafe file.withUnsafeBytes { try unsafe secret.append($0) }
    case .none: break
    }
    return unsafe secret.withUnsafeBytes {
      HKDF<SHA256>.deriveKey(
        inputKeyMaterial: unsafe SymmetricKey(data: $0), salt: parameters.salt, info: info,
        outputByteCount: 32)
    }
  }
}

/// One way to the master key: a row of the slot table.
struct KeySlot: Equatable {
  /// The numbers of the format; those without a source yet are reserved.
  enum Kind: UInt64 {
    case passphrase = 1
    case keyFile = 2
    case passphraseAndKeyFile = 3
    case secretService = 4
    case systemCredential = 5
    case recoveryCode = 6
  }

  var id: UInt64
  var kind: UInt64
  var parameters: [UInt8]
  /// HMAC of the slot's key: AES-GCM alone would not say that a key is another one.
  var commitment: [UInt8]
  var sealed: [UInt8]
  /// Tells a damaged slot from a wrong key; no secret goes into it.
  var checksum: [UInt8]

  /// A new slot for `master`.
  init(
    id: UInt64, _ source: borrowing some KeySource & ~Copyable, master: SymmetricKey, store: [UInt8]
  ) throws {
    self.id = id
    kind = source.kind.rawValue
    parameters = source.makeParameters()
    (commitment, sealed, checksum) = ([], [], [])
    let key = try source.key(parameters, info: binding(store))
    commitment = Self.commitment(key)
    sealed = try Array(Sealing.seal(key: master, under: key, boundTo: binding(store)))
    checksum = currentChecksum
  }

  /// The master key; nil: the slot is whole and `source` is not its key. - Throws: `damaged`.
  func open(_ source: borrowing some KeySource & ~Copyable, store: [UInt8]) throws -> SymmetricKey? {
    guard checksum == currentChecksum else { throw StoreError.damaged(what: "a key slot") }
    let key = try source.key(parameters, info: binding(store))
    let code = HMAC<SHA256>.isValidAuthenticationCode(
      commitment, authenticating: Self.commitmentText, using: key)
    guard code else { return nil }
    return try unsafe sealed.withUnsafeBytes {
      try unsafe Sealing.openKey(Sealing.box($0), under: key, boundTo: binding(store))
    }
  }
}

extension KeySlot {
  static func fetchAll(_ database: Database) throws -> [KeySlot] {
    let query = try Query(
      database, "SELECT id, kind, parameters, commitment, sealed, checksum FROM slot ORDER BY id")
    var slots: [KeySlot] = []
    while try query.step() { slots.append(KeySlot(query)) }
    return slots
  }

  /// Puts `slots` in the place of all that are there.
  static func replaceAll(with slots: [KeySlot], _ database: Database) throws {
    try database.execute(sql: "DELETE FROM slot")
    for slot in slots { try slot.insert(database) }
  }

  func insert(_ database: Database) throws {
    let query = try Query(
      database,
      "INSERT INTO slot (id, kind, parameters, commitment, sealed, checksum) VALUES (?, ?, ?, ?, ?, ?)")
    query.bind(1, id)
    query.bind(2, kind)
    query.bind(3, parameters)
    query.bind(4, commitment)
    query.bind(5, sealed)
    query.bind(6, checksum)
    try query.run()
  }

  private init(_ query: borrowing Query) {
    id = query.integer(0)
    kind = query.integer(1)
    parameters = query.bytes(2)
    commitment = query.bytes(3)
    sealed = query.bytes(4)
    checksum = query.bytes(5)
  }

  private static let commitmentText = Array("keyhole/v1/commit".utf8)

  private static func commitment(_ key: SymmetricKey) -> [UInt8] {
    Array(HMAC<SHA256>.authenticationCode(for: commitmentText, using: key))
  }

  private func binding(_ store: [UInt8]) -> [UInt8] {
    Binding.slot(store: store, id: id, kind: kind, parameters: parameters).bytes
  }

  private var currentChecksum: [UInt8] {
    var writer = FieldWriter(capacity: 256)
    writer.put(1, id)
    writer.put(2, kind)
    writer.put(3, parameters)
    writer.put(4, commitment)
    writer.put(5, sealed)
    return Array(SHA256.hash(data: writer.bytes).prefix(8))
  }
}
