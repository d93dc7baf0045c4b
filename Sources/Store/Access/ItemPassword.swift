public import Model
public import SecretMemory
import Synchronization

/// The password that one item is sealed with besides the keychain's keys (`applicationPassword`).
public final class ItemPassword: Sendable {
  /// A key that was derived from a password.
  public final class Key: Sendable {
    /// The key, in memory that is locked and wiped.
    public let bytes: SecretBytes

    fileprivate init(_ bytes: consuming SecretBytes) {
      self.bytes = bytes
    }
  }

  /// The password in UTF-8; empty if another process keeps it (`engine`).
  public let bytes: SecretBytes
  /// Another process asks for the password and opens the item with it: through this engine. nil: it is known here.
  public let engine: (any KeychainEngine)?
  private let keys = Mutex<[[UInt8]: Key]>([:])

  /// Takes over a password that is known in this process.
  public init(_ bytes: consuming SecretBytes) {
    self.bytes = bytes
    engine = nil
  }

  /// A password that another process keeps.
  ///
  /// - Throws: `outOfMemory`.
  public init(through engine: any KeychainEngine) throws(StoreError) {
    do { bytes = try SecretBytes() } catch { throw .outOfMemory }
    self.engine = engine
  }

  /// The key that `derive` makes of the password with these parameters; once only, because it may take half a second.
  public func key(
    _ parameters: [UInt8], _ derive: (borrowing SecretBytes) throws -> SecretBytes
  ) throws -> Key {
    try keys.withLock { keys in
      if let key = keys[parameters] { return key }
      let key = Key(try derive(bytes))
      keys[parameters] = key
      return key
    }
  }

  /// Parameters with which a key was derived already; nil: none was.
  public var knownParameters: [UInt8]? { keys.withLock { $0.keys.first } }
}
