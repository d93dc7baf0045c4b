import VaultDatabase
import VaultRecords

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
