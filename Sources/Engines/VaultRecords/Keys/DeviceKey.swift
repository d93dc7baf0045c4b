import Crypto
package import SecretMemory

/// The key that never leaves this device, for the …ThisDeviceOnly classes.
package struct DeviceKey: ~Copyable {
  package let bytes: SecretBytes
  /// Distinguishes devices; it says nothing about the key.
  package let id: [UInt8]

  package init(_ bytes: consuming SecretBytes) {
    let key = SymmetricKey(copying: bytes.span)
    // The same in every format: the file outlives a vault's format.
    let code = HMAC<SHA256>.authenticationCode(for: VaultFormat.one.info("device"), using: key)
    id = Array(code.prefix(16))
    self.bytes = bytes
  }

  /// The id that means "any device".
  package static let anyID = [UInt8](repeating: 0, count: 16)
}
