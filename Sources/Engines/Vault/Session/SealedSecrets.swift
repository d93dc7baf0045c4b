import Crypto
import SecretMemory
import VaultDatabase
import VaultRecords

/// Secrets that were read, as they are sealed, until the next commit to the database or until the vault is locked.
///
/// Reading one again then takes no statement of SQLite's. The keys of the values are kept in locked memory beside them: for
/// as long as the key of their class, which opens them all, is there too.
struct SealedSecrets {
  /// In bytes.
  private static let limit = 1 << 17
  /// How many keys of values are kept: locked memory is for secrets that are open.
  private static let mostKeys = 64

  /// A secret that was read, and the key of its value.
  final class Kept {
    let secret: SealedSecret
    private let valueKey: StoredKey

    fileprivate init(_ secret: SealedSecret, _ valueKey: SymmetricKey) throws {
      self.secret = secret
      self.valueKey = try StoredKey(valueKey)
    }

    /// - Throws: `damaged`, `SecretMemoryError`.
    func open() throws -> SecretBytes { try secret.open(valueKey.symmetric()) }
  }

  private var mark: WALSnapshot?
  private var secrets: [ItemKey: Kept] = [:]
  private var size = 0

  /// nil: not known, or not of that moment.
  func secret(_ key: ItemKey, at mark: WALSnapshot?) -> Kept? {
    guard let mark, mark == self.mark else { return nil }
    return secrets[key]
  }

  /// `mark`: from before the secret was read. Without locked memory for its key it is not kept.
  mutating func keep(_ secret: SealedSecret, _ valueKey: SymmetricKey, of key: ItemKey, at mark: WALSnapshot?)
  {
    guard let mark, secret.size < Self.limit / 4 else { return }
    let isFull = size + secret.size > Self.limit || secrets.count >= Self.mostKeys
    if mark != self.mark || isFull { (secrets, size) = ([:], 0) }
    self.mark = mark
    guard let kept = try? Kept(secret, valueKey) else { return }
    size += secret.size - (secrets.updateValue(kept, forKey: key)?.secret.size ?? 0)
  }
}
