import Crypto
import Model
import SecretMemory

/// A secret as it is sealed in its row, and what it is bound to: all that it takes to open it but the class key.
struct SealedSecret {
  let classKey: UInt64
  let accessibility: Accessibility
  let size: Int
  private let binding: (key: [UInt8], value: [UInt8])
  private let wrapped: AES.GCM.SealedBox
  private let value: AES.GCM.SealedBox

  /// - Throws: `damaged`.
  init(
    classKey: UInt64, accessibility: Accessibility, binding: SecretBinding, wrapped: [UInt8], value: [UInt8]
  ) throws(StoreError) {
    (self.classKey, self.accessibility) = (classKey, accessibility)
    var valueBinding = binding
    valueBinding.purpose = .value
    self.binding = (binding.bytes, valueBinding.bytes)
    size = wrapped.count + value.count + 2 * binding.bytes.count
    self.wrapped = try Sealing.box(wrapped)
    self.value = try Sealing.box(value)
  }

  /// - Throws: `damaged`, `SecretMemoryError`.
  func open(under classKey: SymmetricKey) throws -> SecretBytes {
    let valueKey = try Sealing.openKey(wrapped, under: classKey, boundTo: binding.key)
    return try Sealing.openSecret(value, under: valueKey, boundTo: binding.value)
  }
}

/// Secrets that were read, as they are sealed, for as long as nobody commits anything to the database.
///
/// Reading one again then takes no statement of SQLite's; what opens it is asked for each time.
struct SealedSecrets {
  /// In bytes.
  private static let limit = 1 << 17

  private var mark: CommitMark?
  private var secrets: [ItemKey: SealedSecret] = [:]
  private var size = 0

  /// nil: not known, or not of that moment.
  func secret(_ key: ItemKey, at mark: CommitMark?) -> SealedSecret? {
    guard let mark, mark == self.mark else { return nil }
    return secrets[key]
  }

  /// `mark`: from before the secret was read.
  mutating func keep(_ secret: SealedSecret, of key: ItemKey, at mark: CommitMark?) {
    guard let mark, secret.size < Self.limit / 4 else { return }
    if mark != self.mark || size + secret.size > Self.limit { (secrets, size) = ([:], 0) }
    self.mark = mark
    size += secret.size - (secrets.updateValue(secret, forKey: key)?.size ?? 0)
  }
}
