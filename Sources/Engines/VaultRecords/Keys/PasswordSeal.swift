package import Crypto
import Model
import SecretMemory
package import Store

/// The part of a seal by an item's own password (`applicationPassword`): a key that scrypt makes of it.
package struct PasswordSeal {
  package let password: ItemPassword
  /// The cost of a new derivation.
  package let cost: PassphraseCost

  package init(password: ItemPassword, cost: PassphraseCost) {
    (self.password, self.cost) = (password, cost)
  }

  /// Parameters to seal with. Those that the password was used with before will do: another derivation would take
  /// half a second, and each seal has a key of its own all the same.
  package var parameters: [UInt8] { password.knownParameters ?? PassphraseParameters(cost).bytes }

  /// The key for one seal, which `info` is bound to.
  ///
  /// - Throws: `damaged` for parameters outside of the bounds, `outOfMemory`.
  package func key(_ parameters: [UInt8], info: [UInt8]) throws -> SymmetricKey {
    let salt = try PassphraseParameters(parameters).salt
    let derived = try derive(parameters)
    return derived.bytes.withSpan(0..<derived.bytes.count) {
      HKDF<SHA256>.deriveKey(
        inputKeyMaterial: SymmetricKey(copying: $0), salt: salt, info: info, outputByteCount: 32)
    }
  }

  /// Half a second of work, once for a password and its parameters.
  @discardableResult
  package func derive(_ parameters: [UInt8]) throws -> ItemPassword.Key {
    try password.key(parameters) { password in
      let key = try PassphraseParameters(parameters).derive(password)
      var bytes = try SecretBytes()
      try key.append(to: &bytes)
      return bytes
    }
  }
}
