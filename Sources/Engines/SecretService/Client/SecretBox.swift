import Model
import SecretMemory
import Synchronization

/// A secret on its way between threads.
final class SecretBox: Sendable {
  private let secret: Mutex<SecretBytes?>

  init(_ secret: consuming SecretBytes) {
    self.secret = Mutex(consume secret)
  }

  /// - Throws: `outOfMemory`.
  convenience init(copying secret: borrowing SecretBytes) throws(StoreError) {
    do { self.init(try SecretBytes(copying: secret)) } catch { throw .outOfMemory }
  }

  /// nil: there is no memory for it.
  convenience init?(copying bytes: Span<UInt8>) {
    guard let secret = try? SecretBytes(copying: bytes) else { return nil }
    self.init(secret)
  }

  /// The secret, once.
  func take() throws(StoreError) -> SecretBytes {
    guard let secret = secret.withLock({ $0.take() }) else { throw .outOfMemory }
    return secret
  }

  /// Lends the secret, which stays.
  func withSecret<Value>(_ body: (borrowing SecretBytes) -> Value?) -> Value? {
    secret.withLock { secret in
      guard let taken = secret.take() else { return nil }
      let value = body(taken)
      secret = consume taken
      return value
    }
  }
}
