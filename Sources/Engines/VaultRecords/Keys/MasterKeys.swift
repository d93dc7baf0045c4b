package import Crypto
import Model
package import SecretMemory

/// The keys in a key slot.
package struct MasterKeys {
  /// The key that every other one is derived from or sealed under.
  package let master: SymmetricKey
  /// The second key of the class `whenPasscodeSetThisDeviceOnly`; nil: the slot takes no passphrase.
  package let passcode: SymmetricKey?

  /// New random ones.
  package static func random(withPasscode: Bool) -> MasterKeys {
    MasterKeys(
      master: SymmetricKey(size: .bits256), passcode: withPasscode ? SymmetricKey(size: .bits256) : nil)
  }

  /// The key under which the class keys of one accessibility class are kept; `device` is nil for those that open on
  /// any device.
  ///
  /// - Throws: `accessDenied` for the class that takes a passphrase, where there is none.
  func classKeyWrap(
    _ header: VaultHeader, _ accessibility: Accessibility, device: borrowing DeviceKey?
  ) throws -> SymmetricKey {
    var info = header.format.info("class") + [accessibility.code]
    var input = try KeyInput(salt: header.store)
    try input.append(master)
    switch device {
    case .some(let device):
      try input.append(device.bytes)
      info += device.id
    case .none: break
    }
    if header.format >= .two { try appendPasscode(accessibility, to: &input) }
    return input.key(info: info)
  }

  /// The key under which a class key of another device is carried over from earlier master keys.
  func carriedKeyWrap(_ header: VaultHeader, _ accessibility: Accessibility) throws -> SymmetricKey {
    var input = try KeyInput(salt: header.store)
    try input.append(master)
    try appendPasscode(accessibility, to: &input)
    return input.key(info: header.format.info("carried") + [accessibility.code])
  }

  private func appendPasscode(_ accessibility: Accessibility, to input: inout KeyInput) throws {
    guard accessibility == .whenPasscodeSetThisDeviceOnly else { return }
    guard let passcode else {
      throw StoreError.accessDenied(reason: "the item opens with the vault's passphrase only")
    }
    try input.append(passcode)
  }
}

/// The secret input of a key derivation (HKDF, RFC 5869, with SHA-256), and its salt.
package struct KeyInput: ~Copyable {
  private var secret: SecretBytes
  private let salt: [UInt8]

  package init(salt: [UInt8]) throws {
    secret = try SecretBytes()
    self.salt = salt
  }

  package mutating func append(_ key: SymmetricKey) throws {
    try key.append(to: &secret)
  }

  package mutating func append(_ bytes: borrowing SecretBytes) throws {
    try secret.append(bytes.span)
  }

  package borrowing func key(info: [UInt8]) -> SymmetricKey {
    HKDF<SHA256>.deriveKey(
      inputKeyMaterial: SymmetricKey(copying: secret.span), salt: salt, info: info, outputByteCount: 32)
  }
}
