import Crypto
import Model
public import SecretMemory

/// A random secret that opens a slot with a public key: 128 bits or more, so that no guess has to be made slow.
public final class SlotSecret: Sendable {
  /// The kind of slot that the secret opens.
  public enum Kind: Hashable, Sendable {
    /// A person keeps it on paper.
    case recoveryCode
    /// systemd passes it to a service (`LoadCredentialEncrypted=`).
    case credential
  }

  /// The kind of its slot.
  public let kind: Kind
  package let bytes: SecretBytes

  /// Takes over the bytes of a secret.
  public init(_ kind: Kind, _ bytes: consuming SecretBytes) {
    self.kind = kind
    self.bytes = bytes
  }

  /// The salt of a new slot, in bytes.
  private static let saltLength = 32

  package static func makeParameters() -> [UInt8] {
    (0..<saltLength).map { _ in UInt8.random(in: .min ... .max) }
  }

  /// The private key that belongs to the secret, by the parameters of its slot.
  ///
  /// HKDF without scrypt: the secret is uniformly random, and 2¹²⁸ guesses can't be made.
  /// - Throws: `damaged` for parameters of another length, `outOfMemory`.
  func privateKey(_ parameters: [UInt8]) throws -> Curve25519.KeyAgreement.PrivateKey {
    guard parameters.count == Self.saltLength else { throw StoreError.damaged(what: "a key slot") }
    var input = try KeyInput(salt: parameters)
    try input.append(bytes)
    let key = input.key(info: VaultFormat.two.info(kind.slot.info))
    return try key.withBytes {
      try $0.withBorrowedData { try Curve25519.KeyAgreement.PrivateKey(rawRepresentation: $0) }
    }
  }
}

extension SlotSecret.Kind {
  package var slot: KeySlot.Kind {
    switch self {
    case .recoveryCode: .recoveryCode
    case .credential: .systemCredential
    }
  }
}

extension KeySlot.Kind {
  /// The end of the HKDF info with which a private key is derived.
  fileprivate var info: String { self == .recoveryCode ? "recovery" : "credential" }
}

extension KeySlot {
  /// A new slot that the secret opens. It holds the key of the class `whenPasscodeSetThisDeviceOnly` as well: the secret stands
  /// for the passphrase.
  package init(id: UInt64, _ secret: SlotSecret, _ keys: MasterKeys, _ header: VaultHeader) throws {
    let parameters = SlotSecret.makeParameters()
    let key = SlotPublicKey(try secret.privateKey(parameters).publicKey)
    try self.init(id: id, secret.kind.slot, parameters: parameters, key, keys, header)
  }

  /// The keys in a slot of the secret's kind; nil: the slot is whole, and another secret's.
  package func open(_ secret: SlotSecret, _ header: VaultHeader) throws -> MasterKeys? {
    let key = try secret.privateKey(parameters)
    return try open(key, header)
  }
}
