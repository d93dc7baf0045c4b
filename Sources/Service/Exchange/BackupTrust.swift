import Backup
import Control
import KeychainSelection
import Model
import Platform
import Store
import Vault

/// Whether the vault is what was last stored in it, as far as that is known before a backup and without its passphrase.
package struct BackupTrust {
  /// The effect of a backup on one that is there.
  package enum Effect: Sendable {
    case keeps
    case replaces
  }

  private let places: StoragePaths

  package init(_ places: StoragePaths) {
    self.places = places
  }

  /// A line for the person who makes the backup; nil: there is nothing to say.
  ///
  /// - Throws: `Failure` where the backup would take the place of one that may be of a newer state.
  package func notice(_ effect: Effect) throws -> String? {
    guard try exists() else {
      guard effect == .replaces, names(in: places.state).contains(where: { $0.hasSuffix(".anchor") }) else {
        return nil
      }
      throw refusal(places.vault, "there is no vault any more, and this device has used one")
    }
    switch judgement {
    case .success(.distrusted(let problem)) where effect == .replaces:
      throw refusal(problem.subject, problem.reason)
    case .success(let trust): return trust.line
    case .failure(let error) where effect == .replaces: throw refusal(places.vault, error.message)
    // A vault that takes a passphrase is usual.
    case .failure(.locked): return nil
    case .failure(let error):
      return "\(places.vault): \(error.message); it is backed up as it is".escapedForTerminal
    }
  }

  private func exists() throws -> Bool {
    do throws(StoreError) { return try VaultArchive.exists(in: places.vault) } catch {
      throw Failure(places.vault, "\(error.message). Nothing was written")
    }
  }

  private func refusal(_ subject: String, _ reason: String) -> Failure {
    Failure(
      subject, "\(reason): its backup does not replace another one; name another file. Nothing was written")
  }

  /// Failure: that is not known; `locked` without its passphrase.
  private var judgement: Result<KeychainTrust, StoreError> {
    do throws(StoreError) {
      let vault = try VaultEngine(directory: places.vault, stateDirectory: places.state)
      if vault.lockState == .open { return .success(vault.trust) }
      let mounted = MountRegistration.serving(vault: places.vault, in: places.runtime)?.trust
      return mounted.map { .success($0) } ?? .failure(.locked)
    } catch {
      return .failure(error)
    }
  }
}
