import Control
import KeychainSelection
import Model
import Prompting
import SecretMemory
import Service
import Store

/// The offer to unlock a mount that has just come up locked.
struct NewMountUnlock {
  private static let attempts = 3

  private let mount: MountRegistration
  private let places: StoragePaths

  /// nil: no mount of this user's has come up since, or it is open.
  init?(startedAfter before: Set<Int32>) throws {
    places = try StoragePaths.current()
    let new = MountRegistration.all(in: places.runtime).first { !before.contains($0.process) }
    guard let new, try RunningMount(new).waitsForPassphrase else { return nil }
    mount = new
  }

  /// Asks on a terminal, where Return leaves it locked; else says that it is locked.
  func run() throws {
    let isOpen = SecretInput.isTyped ? try SecretInput.askRepeatedly(ask) : false
    if !isOpen { sayLocked() }
  }

  /// Whether a passphrase has opened it.
  private func ask() throws -> Bool {
    for attempt in 1...Self.attempts {
      let passphrase = try SecretInput.ask("Passphrase of the vault (Return: leave it locked): ")
      guard !passphrase.isEmpty else { return false }
      guard let failure = mount.unlock(passphrase, places) else { return true }
      guard failure == .rejected else { throw mount.failure(failure) }
      let left = Self.attempts - attempt
      let rest = left == 0 ? "" : "; \(left) \(left == 1 ? "try is" : "tries are") left"
      StandardError.write("Wrong passphrase\(rest).\n")
    }
    return false
  }

  private func sayLocked() {
    guard StandardError.showsNotes else { return }
    StandardError.write(
      "keyhole: \(mount.path.escapedForTerminal): the keychain is locked; `keyhole unlock` opens it\n")
  }
}
