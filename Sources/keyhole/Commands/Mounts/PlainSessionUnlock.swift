import KeychainSelection
import Model
import Prompting
import SecretMemory
import Service
import Store
import Vault

/// The question for the passphrase of a vault that may allow a Secret Service without encryption on the bus, before such a service
/// is mounted.
struct PlainSessionUnlock {
  private static let attempts = 3

  private let vault: VaultEngine

  /// nil: nothing is to be asked; or no person types here.
  init?(_ options: MountOptions) throws {
    guard SecretInput.isTyped, !options.isForUser else { return nil }
    let places = try StoragePaths.current(options)
    guard let vault = options.keychain.vaultOfPlainSession(vault: places.vault, state: places.state) else {
      return nil
    }
    self.vault = vault
  }

  /// Whether the vault allows it; Return, or a third wrong passphrase, leaves the vault locked.
  func isAllowed() throws -> Bool {
    defer { vault.close() }
    StandardError.write("keyhole: the Secret Service offers no encryption on the bus\n")
    return try SecretInput.askRepeatedly(ask)
  }

  private func ask() throws -> Bool {
    for _ in 0..<Self.attempts {
      let passphrase = try SecretInput.ask("Passphrase of the vault, whose `plain-session` may allow that: ")
      guard !passphrase.isEmpty else { return false }
      do throws(StoreError) {
        try vault.unlock(passphrase)
        return KeychainConfiguration.allowsPlainSession(vault)
      } catch {
        guard error == .rejected else { throw Failure("vault", error) }
        StandardError.write("Wrong passphrase.\n")
      }
    }
    return false
  }
}
