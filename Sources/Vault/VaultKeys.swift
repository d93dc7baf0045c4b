import Crypto
import FoundationEssentials
import Model
import SecretMemory

/// A long-lived key: in secret memory, and a `SymmetricKey` (which wipes itself) for one call only.
struct StoredKey: ~Copyable {
  private let bytes: SecretBytes

  init(_ key: SymmetricKey) throws {
    var bytes = try SecretBytes()
    try unsafe key.withUnsafeBytes { try unsafe bytes.append($0) }
    self.bytes = bytes
  }

  borrowing func symmetric() -> SymmetricKey {
    unsafe bytes.withUnsafeBytes { unsafe SymmetricKey(data: $0) }
  }
}

/// The keys that open everything but the secrets, all made from the master key.
///
/// `ClassKeyring` holds those for the secrets, so that a lock can drop them alone.
final class VaultKeys {
  let store: [UInt8]
  /// nil: locked.
  private var master: StoredKey?
  private let metadataKey: StoredKey
  private let indexKey: StoredKey
  private let manifestKey: StoredKey
  private let witnessKey: StoredKey
  private let anchorKey: StoredKey

  init(master: SymmetricKey, store: [UInt8]) throws {
    self.store = store
    self.master = try StoredKey(master)
    metadataKey = try StoredKey(Self.derive(master, store, "keyhole/v1/meta"))
    indexKey = try StoredKey(Self.derive(master, store, "keyhole/v1/index"))
    manifestKey = try StoredKey(Self.derive(master, store, "keyhole/v1/manifest"))
    witnessKey = try StoredKey(Self.derive(master, store, "keyhole/v1/witness"))
    anchorKey = try StoredKey(Self.derive(master, store, "keyhole/v1/anchor"))
  }

  /// Drops what class keys are opened by; names and attributes stay.
  func lock() {
    master = nil
  }

  /// Takes the master key again. Nothing else of the keys has changed.
  func unlock(_ master: SymmetricKey) throws {
    self.master = try StoredKey(master)
  }

  /// A copy of the master key, for a new slot. - Throws: `locked`.
  func copyMaster() throws -> SymmetricKey {
    switch master {
    case .some(let master): return master.symmetric()
    case .none: throw StoreError.locked
    }
  }

  var metadata: SymmetricKey { metadataKey.symmetric() }
  var manifest: SymmetricKey { manifestKey.symmetric() }

  /// The lookup tag of an identity: equal for equal ones, and nothing else can be told from it.
  func tag(of identity: ItemIdentity) -> [UInt8] {
    var writer = FieldWriter()
    ItemRecord.put(identity, into: &writer)
    return Array(mac(writer.bytes, indexKey.symmetric()).prefix(16))
  }

  /// What a row adds to the manifest's sum: nobody without the key can say which rows add up to what.
  func witness(of item: ItemKey, revision: UInt64) -> Witness {
    var writer = FieldWriter(capacity: 24)
    writer.put(raw: item.bytes)
    writer.put(raw: revision)
    return Witness(mac(writer.bytes, witnessKey.symmetric()))
  }

  func anchorCode(_ content: [UInt8]) -> [UInt8] {
    mac(content, anchorKey.symmetric())
  }

  func isAnchorCode(_ code: [UInt8], of content: [UInt8]) -> Bool {
    HMAC<SHA256>.isValidAuthenticationCode(code, authenticating: content, using: anchorKey.symmetric())
  }

  /// The key under which the class keys of one accessibility class are kept; `device` is nil for those
  /// that open on any device. - Throws: `locked`.
  func classKeyWrap(_ accessibility: Accessibility, device: borrowing DeviceKey?) throws -> SymmetricKey {
    var secret = try SecretBytes()
    let master = try copyMaster()
    try unsafe master.withUnsafeBytes { try unsafe secret.append($0) }
    var info = Array("keyhole/v1/class".utf8)
    info.append(accessibility.code)
    switch device {
    case .some(let device):
      try unsafe device.bytes.withUnsafeBytes { try unsafe secret.append($0) }
      info += device.id
    case .none: break
    }
    return unsafe secret.withUnsafeBytes {
      HKDF<SHA256>.deriveKey(
        inputKeyMaterial: unsafe SymmetricKey(data: $0), salt: store, info: info, outputByteCount: 32)
    }
  }

  private static func derive(_ master: SymmetricKey, _ store: [UInt8], _ info: String) -> SymmetricKey {
    HKDF<SHA256>.deriveKey(
      inputKeyMaterial: master, salt: store, info: Array(info.utf8), outputByteCount: 32)
  }

  private func mac(_ content: [UInt8], _ key: SymmetricKey) -> [UInt8] {
    Array(HMAC<SHA256>.authenticationCode(for: content, using: key))
  }
}

/// The key that never leaves this device, for the …ThisDeviceOnly classes.
struct DeviceKey: ~Copyable {
  let bytes: SecretBytes
  /// Tells one device from another; nothing about the key can be told from it.
  let id: [UInt8]

  init(_ bytes: consuming SecretBytes) {
    let key = unsafe bytes.withUnsafeBytes { unsafe SymmetricKey(data: $0) }
    let code = HMAC<SHA256>.authenticationCode(for: Array("keyhole/v1/device".utf8), using: key)
    id = Array(code.prefix(16))
    self.bytes = bytes
  }

  /// What stands for "any device".
  static let anyID = [UInt8](repeating: 0, count: 16)
}
