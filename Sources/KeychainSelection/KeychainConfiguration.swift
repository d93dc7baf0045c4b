package import Control
package import Model
import Sealing
import SecretService
package import Store
import Vault

/// The keychain that a choice leads to, and why it is that one.
package struct OpenedKeychain: Sendable {
  package let engine: (any KeychainEngine)?
  /// For `keyhole status`.
  package let explanation: String
  /// The first choice of `auto`, which ``ChosenKeychain`` is to record when something is stored.
  package var firstChoice: KeychainChoice?

  package init(engine: (any KeychainEngine)?, explanation: String, firstChoice: KeychainChoice? = nil) {
    self.engine = engine
    self.explanation = explanation
    self.firstChoice = firstChoice
  }
}

/// Why a keychain can't be opened.
package struct KeychainFailure: Error {
  /// The service, or the vault's folder.
  package let subject: String
  package let error: StoreError
}

/// How the keychain of the user is opened.
package struct KeychainConfiguration: Sendable {
  package var choice: KeychainChoice
  /// Also a Secret Service whose sessions are not encrypted.
  package var allowsPlainSession = false
  /// The vault's folder; nil: the user's own.
  package var vault: String?
  /// Whether opening makes a vault where there is none, as a mount does. A command makes it with the first item.
  package var makesVault = true

  /// How long a Secret Service may take to be chosen by `auto`, in milliseconds: a command must not wait for it.
  package static let patience = 80
  /// How long one that was asked for may take, in milliseconds.
  private static let longPatience = 5_000

  package init(choice: KeychainChoice = .automatic) {
    self.choice = choice
  }

  /// Opens it; the folders are the vault's, where no other is said.
  package func open(vault: String, state: String) throws(KeychainFailure) -> OpenedKeychain {
    let folders = (vault: self.vault ?? vault, state: state)
    switch choice {
    case .none: return OpenedKeychain(engine: nil, explanation: "none, as `keychain=none` says")
    case .vault: return try openVault(folders, "as `keychain=vault` says")
    case .secretService:
      do throws(StoreError) {
        let engine = try service(within: Self.longPatience)
        return OpenedKeychain(
          engine: sealing(engine, folders),
          explanation: "the Secret Service, as `keychain=secret-service` says")
      } catch {
        throw KeychainFailure(subject: "Secret Service", error: error)
      }
    case .automatic: return try automatic(folders)
    }
  }

  private func automatic(_ folders: VaultFolders) throws(KeychainFailure) -> OpenedKeychain {
    switch ChosenKeychain.fetch(state: folders.state) {
    case .vault?: return try openVault(folders, "which `keychain=auto` has chosen first")
    case .secretService?: return try chosenService(folders)
    case .automatic?, KeychainChoice.none?, nil: return try firstChoice(folders)
    }
  }

  private func firstChoice(_ folders: VaultFolders) throws(KeychainFailure) -> OpenedKeychain {
    do throws(StoreError) {
      let engine = try service(within: Self.patience)
      return OpenedKeychain(
        engine: sealing(engine, folders),
        explanation: "the Secret Service, because one answers on the session bus", firstChoice: .secretService
      )
    } catch {
      var opened = try openVault(folders, "because there is no Secret Service to be used: \(error.reason)")
      opened.firstChoice = .vault
      return opened
    }
  }

  /// Another keychain in its place would hide all items.
  private func chosenService(_ folders: VaultFolders) throws(KeychainFailure) -> OpenedKeychain {
    do throws(StoreError) {
      return OpenedKeychain(
        engine: sealing(try service(within: Self.longPatience), folders),
        explanation: "the Secret Service, which `keychain=auto` has chosen first")
    } catch {
      throw KeychainFailure(
        subject: "Secret Service",
        error: .unreachable(
          reason:
            "\(error.reason). `keychain=auto` has chosen it first and keeps it; log in to the desktop, or `keyhole mount -o keychain=vault` shows the vault in its place"
        ))
    }
  }

  /// Why `auto` finds no Secret Service; nil: one answers.
  package static func whyNoSecretService() -> String? {
    do throws(StoreError) {
      _ = try KeychainConfiguration(choice: .secretService).service(within: 1_000)
      return nil
    } catch {
      return error.reason
    }
  }

  /// Whether a Secret Service answers that has no collection yet.
  package static func hasFreshSecretService() -> Bool {
    guard let engine = try? KeychainConfiguration(choice: .secretService).service(within: 1_000) else {
      return false
    }
    return (try? engine.hasCollection()) == false
  }

  /// A service that has answered.
  private func service(within milliseconds: Int) throws(StoreError) -> SecretServiceEngine {
    guard let address = SessionBus.address else {
      throw .unreachable(
        reason:
          "there is no session bus: DBUS_SESSION_BUS_ADDRESS is not set, and the runtime folder has no socket `bus`"
      )
    }
    let engine = try SecretServiceEngine(address: address, allowsPlain: allowsPlainSession)
    try engine.connect(within: milliseconds)
    return engine
  }

  private typealias VaultFolders = (vault: String, state: String)

  /// The service with the vault beside it, which is made when the first item is to be sealed.
  private func sealing(_ engine: SecretServiceEngine, _ folders: VaultFolders) -> SealingKeychain {
    SealingKeychain(engine, Seals(vault: folders.vault, state: folders.state))
  }

  private func openVault(
    _ folders: VaultFolders, _ reason: String
  ) throws(KeychainFailure) -> OpenedKeychain {
    if !makesVault, AbsentVault.isAbsent(in: folders.vault) {
      let engine = AbsentVault(folder: folders.vault, state: folders.state)
      return OpenedKeychain(engine: engine, explanation: "vault, \(reason); it is made with the first item")
    }
    do throws(StoreError) {
      let engine = try VaultEngine(directory: folders.vault, stateDirectory: folders.state)
      return OpenedKeychain(engine: engine, explanation: "vault, \(reason)")
    } catch {
      throw KeychainFailure(subject: folders.vault, error: error)
    }
  }
}

extension KeychainConfiguration {
  private static let plain = "+plain-session"

  /// The keychain of the running mount, else as `auto`.
  package static func present(runtime folder: String) -> KeychainConfiguration {
    MountRegistration.all(in: folder).last { $0.isAlive }?.keychain ?? KeychainConfiguration()
  }

  /// Opens it for a program that has no passphrase: a vault that takes one, also where it seals what another keychain
  /// holds, is the mount's that has unlocked it.
  package func open(
    vault: String, state: String, runtime: String
  ) throws(KeychainFailure) -> OpenedKeychain {
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
    guard engine.isTheMounts(find) else { return opened }
    let mounted = MountedKeychain(name: engine.name, runtimeFolder: runtime, find: find)
    return OpenedKeychain(engine: mounted, explanation: opened.explanation, firstChoice: opened.firstChoice)
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

  /// Without `auto`: what was chosen, by the engine's name, and the vault's folder.
  package func settled(on engine: String?, vault: String) -> KeychainConfiguration {
    var settled = self
    settled.vault = self.vault ?? vault
    settled.choice = engine.flatMap(KeychainChoice.init) ?? .none
    return settled
  }

  /// For the note of a mount.
  var word: String { choice.rawValue + (allowsPlainSession ? Self.plain : "") }

  init(word: String) {
    allowsPlainSession = word.hasSuffix(Self.plain)
    let choice = allowsPlainSession ? String(word.dropLast(Self.plain.count)) : word
    self.choice = KeychainChoice(rawValue: choice) ?? .automatic
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

extension StoreError {
  /// The reason in the message, without the words around it.
  fileprivate var reason: String {
    switch self {
    case .unreachable(let reason), .notPermitted(let reason): reason
    default: message
    }
  }
}

/// The mount option `keychain=`.
package enum KeychainChoice: String, CaseIterable, Sendable {
  case automatic = "auto"
  case secretService = "secret-service"
  case vault
  case none
}
