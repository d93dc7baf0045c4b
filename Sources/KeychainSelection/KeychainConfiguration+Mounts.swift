package import Control
import Model
import Store

// Keychains that a running mount serves.
extension KeychainConfiguration {
  /// Opens it for a program that has no passphrase: a vault that takes one, also where it seals what another keychain
  /// holds, is the mount's that has unlocked it.
  package func open(
    vault: String, state: String, runtime: String
  ) throws(KeychainFailure) -> OpenedKeychain {
    if choice == .cluster { return try openOfCluster(vault: vault, runtime: runtime) }
    var reading = self
    reading.makesVault = false
    let opened: OpenedKeychain
    do throws(KeychainFailure) {
      opened = try reading.open(vault: vault, state: state)
    } catch {
      guard let mounted = mountedInPlace(of: error, vault: vault, runtime: runtime) else { throw error }
      return mounted
    }
    guard let engine = opened.engine else { return opened }
    let settled = settled(on: engine.name, vault: vault)
    let find = { @Sendable in MountRegistration.process(serving: settled, in: runtime) }
    guard engine.isTheMounts(find), !unlocksWithoutMount || find() != nil else { return opened }
    let mounted = MountedKeychain(
      name: engine.name, runtimeFolder: runtime, takesBatches: engine.batches != nil, find: find)
    return OpenedKeychain(engine: mounted, explanation: opened.explanation, firstChoice: opened.firstChoice)
  }

  /// Only the mount's process reaches a cluster.
  private func openOfCluster(vault: String, runtime: String) throws(KeychainFailure) -> OpenedKeychain {
    let settled = settled(on: choice.rawValue, vault: vault)
    let find = { @Sendable in MountRegistration.process(serving: settled, in: runtime) }
    guard find() != nil else { throw Self.ofMountAlone }
    let mounted = MountedKeychain(name: choice.rawValue, runtimeFolder: runtime, find: find)
    return OpenedKeychain(engine: mounted, explanation: "that of a cluster, through its mount")
  }

  /// A vault whose key file is gone as the mount has it that opened it before: what it shows can still be exported.
  private func mountedInPlace(
    of failure: KeychainFailure, vault: String, runtime: String
  ) -> OpenedKeychain? {
    let settled = settled(on: KeychainChoice.vault.rawValue, vault: vault)
    let find = { @Sendable in MountRegistration.process(serving: settled, in: runtime) }
    guard case .accessDenied = failure.error, choice == .vault, find() != nil else { return nil }
    let mounted = MountedKeychain(name: KeychainChoice.vault.rawValue, runtimeFolder: runtime, find: find)
    return OpenedKeychain(engine: mounted, explanation: "vault, as a mount has opened it")
  }

  /// The keychain through the running mount that serves it, whatever this process can open by itself; nil: none does.
  package static func mounted(runtime folder: String) -> MountedKeychain? {
    let opening = present(runtime: folder)
    let find = { @Sendable in MountRegistration.process(serving: opening, in: folder) }
    guard opening.choice != .automatic, opening.choice != .none, find() != nil else { return nil }
    return MountedKeychain(name: opening.choice.rawValue, runtimeFolder: folder, find: find)
  }
}

extension KeychainEngine {
  /// Whether only a mount can open all of it.
  fileprivate func isTheMounts(_ find: () -> Int32?) -> Bool {
    guard locking.hasPasscode(sealed: true) else { return false }
    guard name != KeychainChoice.vault.rawValue else { return locking.lockState != .open }
    // Unsealed items can be read without a mount. Which ones are sealed is known only now.
    guard find() != nil, (try? items()) != nil else { return false }
    return !locking.isOpenThroughout
  }
}
