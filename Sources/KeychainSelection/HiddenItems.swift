import Model
import SecretService
import Store
import Vault

/// Items of a keychain that is there, and is not the one that is shown.
package struct HiddenItems: Sendable {
  /// The keychain that holds them.
  package let keychain: KeychainChoice
  /// nil: it takes a passphrase to tell.
  package let count: Int?

  package var reason: String {
    let name = keychain == .vault ? "the vault" : "the Secret Service"
    let items = count.map { $0 == 1 ? "1 item" : "\($0) items" } ?? "items under a passphrase"
    return "\(name) has \(items) that this keychain does not show"
  }

  /// The commands that show them, and that move them here.
  package var remedy: String {
    let other: KeychainChoice = keychain == .vault ? .secretService : .vault
    return "`keyhole migrate --from \(keychain.rawValue) --to \(other.rawValue)` moves them here, "
      + "`keyhole mount -o keychain=\(keychain.rawValue)` shows them (after `keyhole unmount`, if there is a mount)"
  }

  package var description: String { "\(reason): \(remedy)" }

  /// The items that a keychain of this name leaves out; nil: none that are known.
  ///
  /// It makes nothing, and starts no Secret Service. `patience`: how long it waits for a Secret Service, in milliseconds.
  package static func beside(
    _ engine: String?, vault: String, state: String, patience: Int = 1_000
  ) -> HiddenItems? {
    switch engine.flatMap(KeychainChoice.init) {
    case .secretService?: inVault(vault, state)
    case .vault?: inService(patience)
    case .automatic?, .cluster?, KeychainChoice.none?, nil: nil
    }
  }

  private static func inVault(_ folder: String, _ state: String) -> HiddenItems? {
    guard !AbsentVault.isAbsent(in: folder),
      let engine = try? VaultEngine(directory: folder, stateDirectory: state)
    else { return nil }
    guard engine.lockState == .open else { return HiddenItems(keychain: .vault, count: nil) }
    guard let count = try? engine.items().count(where: { !$0.identity.isDocument }), count > 0 else {
      return nil
    }
    return HiddenItems(keychain: .vault, count: count)
  }

  private static func inService(_ patience: Int) -> HiddenItems? {
    guard let address = SessionBus.address,
      let engine = try? SecretServiceEngine(address: address, startsService: false),
      (try? engine.connect(within: patience)) != nil,
      let count = try? engine.items().count(where: { !$0.isInMemory }), count > 0
    else { return nil }
    return HiddenItems(keychain: .secretService, count: count)
  }
}
