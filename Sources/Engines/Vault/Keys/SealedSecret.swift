import Crypto
import FoundationEssentials
import Model
import SecretMemory

/// A secret as it is sealed in its row, and what it is bound to: all that it takes to open it but the class key,
/// and the item's password where it has one.
struct SealedSecret {
  let classKey: UInt64
  let accessibility: Accessibility
  let size: Int
  /// How the item's password is to be derived; nil: there is none.
  let passwordParameters: [UInt8]?
  private let binding: (key: [UInt8], value: [UInt8], password: [UInt8])
  private let wrapped: AES.GCM.SealedBox
  private let value: AES.GCM.SealedBox

  /// `outer`: what the seal under the class key is bound to; `inner`: what those inside are.
  ///
  /// - Throws: `damaged`.
  init(
    classKey: UInt64, accessibility: Accessibility, passwordParameters: [UInt8]? = nil,
    outer: SecretBinding, inner: SecretBinding, wrapped: [UInt8], value: [UInt8]
  ) throws(StoreError) {
    (self.classKey, self.accessibility) = (classKey, accessibility)
    self.passwordParameters = passwordParameters
    binding = (outer.bytes, inner.bytes(for: .value), inner.bytes(for: .password))
    size = wrapped.count + value.count + 3 * outer.bytes.count
    self.wrapped = try Sealing.box(wrapped)
    self.value = try Sealing.box(value)
  }

  /// - Throws: `accessDenied` without the password that it takes, `rejected` with a wrong one, `damaged`,
  ///   `SecretMemoryError`.
  func open(under classKey: SymmetricKey, _ password: PasswordSeal?) throws -> SecretBytes {
    try Sealing.openSecret(value, under: valueKey(classKey, password), boundTo: binding.value)
  }

  /// The part that an item's password seals, without the class key's part. - Throws: `damaged`.
  func passwordSeal(under classKey: SymmetricKey) throws -> Data {
    let inner = try Sealing.openSealed(wrapped, under: classKey, boundTo: binding.key)
    return try inner.combined.orDamaged()
  }

  private func valueKey(_ classKey: SymmetricKey, _ password: PasswordSeal?) throws -> SymmetricKey {
    guard let parameters = passwordParameters else {
      return try Sealing.openKey(wrapped, under: classKey, boundTo: binding.key)
    }
    // The content was authentic as a whole: only a wrong password does not open it.
    let inner = try Sealing.openSealed(wrapped, under: classKey, boundTo: binding.key)
    guard let password else { throw StoreError.needsPassword }
    let key = try password.key(parameters, info: binding.password)
    do { return try Sealing.openKey(inner, under: key, boundTo: binding.password) } catch {
      throw StoreError.rejected
    }
  }
}

extension StoreError {
  static let needsPassword = StoreError.accessDenied(
    reason: "the item is sealed with a password of its own")
}

/// Secrets that were read, as they are sealed, until the next commit to the database.
///
/// Reading one again then takes no statement of SQLite's; what opens it is asked for each time.
struct SealedSecrets {
  /// In bytes.
  private static let limit = 1 << 17

  private var mark: WALSnapshot?
  private var secrets: [ItemKey: SealedSecret] = [:]
  private var size = 0

  /// nil: not known, or not of that moment.
  func secret(_ key: ItemKey, at mark: WALSnapshot?) -> SealedSecret? {
    guard let mark, mark == self.mark else { return nil }
    return secrets[key]
  }

  /// `mark`: from before the secret was read.
  mutating func keep(_ secret: SealedSecret, of key: ItemKey, at mark: WALSnapshot?) {
    guard let mark, secret.size < Self.limit / 4 else { return }
    if mark != self.mark || size + secret.size > Self.limit { (secrets, size) = ([:], 0) }
    self.mark = mark
    size += secret.size - (secrets.updateValue(secret, forKey: key)?.size ?? 0)
  }
}
