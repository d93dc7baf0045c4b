package import Crypto
package import FoundationEssentials
package import Model
package import SecretMemory

/// A secret as it is sealed in its row, and what it is bound to: all that it takes to open it but the class key,
/// and the item's password where it has one.
package struct SealedSecret {
  /// The largest secret that an item may have, in bytes.
  package static let largestSize = 1 << 20

  package let classKey: UInt64
  package let accessibility: Accessibility
  package let size: Int
  /// How the item's password is to be derived; nil: there is none.
  package let passwordParameters: [UInt8]?
  private let binding: (key: [UInt8], value: [UInt8], password: [UInt8])
  private let wrapped: AES.GCM.SealedBox
  private let value: AES.GCM.SealedBox

  /// `outer`: what the seal under the class key is bound to; `inner`: what those inside are.
  ///
  /// - Throws: `damaged`.
  package init(
    classKey: UInt64, accessibility: Accessibility, passwordParameters: [UInt8]? = nil,
    outer: SecretBinding, inner: SecretBinding, wrapped: [UInt8], value: [UInt8]
  ) throws(StoreError) {
    (self.classKey, self.accessibility) = (classKey, accessibility)
    self.passwordParameters = passwordParameters
    binding = (outer.bytes, inner.bytes(for: .value), inner.bytes(for: .password))
    size = wrapped.count + value.count + 3 * outer.bytes.count
    self.wrapped = try Cipher.box(wrapped)
    self.value = try Cipher.box(value)
  }

  /// - Throws: `accessDenied` without the password that it takes, `rejected` with a wrong one, `damaged`,
  ///   `SecretMemoryError`.
  package func open(under classKey: SymmetricKey, _ password: PasswordSeal?) throws -> SecretBytes {
    try open(valueKey(under: classKey, password))
  }

  /// Opens it with a key that `valueKey` gave. - Throws: `damaged`, `SecretMemoryError`.
  package func open(_ valueKey: SymmetricKey) throws -> SecretBytes {
    try Cipher.openSecret(value, under: valueKey, boundTo: binding.value)
  }

  /// The part that an item's password seals, without the class key's part. - Throws: `damaged`.
  package func passwordSeal(under classKey: SymmetricKey) throws -> Data {
    let inner = try Cipher.openSealed(wrapped, under: classKey, boundTo: binding.key)
    return try inner.combined.orDamaged()
  }

  /// The key of the value. - Throws: as `open(under:_:)`.
  package func valueKey(under classKey: SymmetricKey, _ password: PasswordSeal?) throws -> SymmetricKey {
    guard let parameters = passwordParameters else {
      return try Cipher.openKey(wrapped, under: classKey, boundTo: binding.key)
    }
    // The content was authentic as a whole: only a wrong password does not open it.
    let inner = try Cipher.openSealed(wrapped, under: classKey, boundTo: binding.key)
    guard let password else { throw StoreError.needsPassword }
    let key = try password.key(parameters, info: binding.password)
    do { return try Cipher.openKey(inner, under: key, boundTo: binding.password) } catch {
      throw StoreError.rejected
    }
  }
}

extension StoreError {
  package static let needsPassword = StoreError.accessDenied(
    reason: "the item is sealed with a password of its own")
}
