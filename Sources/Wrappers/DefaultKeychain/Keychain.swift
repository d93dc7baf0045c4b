public import FoundationEssentials
import Model
package import WrapperCore

/// Secrets by key: the generic passwords of one service in Keyhole's keychain.
///
/// The item of a key is the folder `keychain/generic/SERVICE/KEY` of the mount.
///
/// Where the keychain is locked, the user is asked for the passphrase, and the call waits for the answer, as it does for an item
/// with access flags: up to a minute, on the thread that calls. The mount asks that serves the keychain; without a mount
/// the installed command does (``KeychainLocation/user``). With `KEYHOLE_ASK_UNLOCK=no` in the environment the call fails
/// at once (`StoreError.locked`).
public struct Keychain: Sendable {
  /// The service of the items.
  public let service: String
  private let live: LiveKeychain

  /// The items of this program.
  public static var standard: Keychain { Keychain(service: programName) }

  /// The items of a service, in the keychain that is current.
  public init(service: String) {
    self.init(service: service, in: .chosen)
  }

  /// The items of a service in a keychain.
  public init(service: String, in location: KeychainLocation) {
    self.service = service
    live = location.live
  }

  /// The secret of a key; nil: there is none. - Throws: `StoreError`.
  public func secret(forKey key: String) throws -> Data? {
    try live.first(query(key))?.secret
  }

  /// Stores a secret; nil removes the key. - Throws: `StoreError`.
  public func setSecret(_ secret: Data?, forKey key: String) throws {
    guard let secret else { return try live.removeAll(query(key)) }
    try live.save(query(key), secret: secret)
  }

  /// Stores a secret where the key has none; false: it has one, which stays. - Throws: `StoreError`.
  package func setFirstSecret(_ secret: Data, forKey key: String) throws -> Bool {
    try live.saveFirst(query(key), secret: secret)
  }

  /// Calls `look` after each change of any item.
  package func listen(_ look: @escaping @Sendable () -> Void) -> Listening { live.listen(look) }

  private func query(_ key: String) -> ItemQuery { .generic(service: service, account: key) }

  private static let programName: String = {
    CommandLine.arguments.first?.split(separator: "/").last.map(String.init) ?? "swift"
  }()
}
