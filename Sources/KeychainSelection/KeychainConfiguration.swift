import Control
package import Model
import Platform
import Sealing
import SecretService
package import Store
package import Vault

/// How the keychain of the user is opened.
package struct KeychainConfiguration: Sendable {
  package var choice: KeychainChoice
  /// Whether a Secret Service is taken whose sessions are not encrypted; nil: as the vault says (`plain-session`).
  package var plainSession: Bool?
  /// The vault's folder; nil: the user's own.
  package var vault: String?
  /// Whether opening makes a vault where there is none, as a mount does. A command makes it with the first item.
  package var makesVault = true
  /// Whether a vault that takes a passphrase, and that no mount serves, is opened locked by this process, which may unlock it.
  /// Else it is a mount's, and locked until there is one.
  package var unlocksWithoutMount = false
  /// The systemd credential of this process, which may open a vault.
  package var credential: VaultCredential?
  /// Whether the keychain is to be served as the Secret Service: then the first choice of `auto` is the vault, and no other Secret
  /// Service is started to be asked.
  package var isServed = false
  /// How much of a vault is read at once.
  package var reading = VaultReading.allItems
  /// The settings of `historyKeys` that the mount's options give.
  package var history: [ConfigurationKey: SettingValue] = [:]
  /// The settings of the history, which a mount's note has.
  package static let historyKeys: [ConfigurationKey] = [.history, .historyAge]

  /// How long a Secret Service may take to be the first choice of `auto`, in milliseconds. The choice is kept, so a machine
  /// that is busy for a moment must not decide it.
  private static let firstPatience = 2_000
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
    case .cluster: throw Self.ofMountAlone
    case .secretService:
      do throws(StoreError) {
        let engine = try service(within: Self.longPatience, folders)
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
    case .automatic?, .cluster?, KeychainChoice.none?, nil: return try firstChoice(folders)
    }
  }

  /// Of a cluster's keychain for a process that is no mount's.
  static let ofMountAlone = KeychainFailure(
    subject: "the cluster",
    error: .unreachable(
      reason:
        "its keychain is there only while it is mounted; `keyhole mount -o store=etcd://…` mounts it, and `keyhole status` says more"
    ))

  private func firstChoice(_ folders: VaultFolders) throws(KeychainFailure) -> OpenedKeychain {
    guard !isServed else {
      var opened = try openVault(folders, "because it is served as the Secret Service")
      opened.firstChoice = .vault
      return opened
    }
    do throws(StoreError) {
      let engine = try service(within: Self.firstPatience, folders)
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
        engine: sealing(try service(within: Self.longPatience, folders), folders),
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
      _ = try KeychainConfiguration(choice: .secretService).service(within: longPatience)
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
  ///
  /// `folders`: of the vault that may allow a plain session; nil: none does.
  private func service(
    within milliseconds: Int, _ folders: VaultFolders? = nil
  ) throws(StoreError) -> SecretServiceEngine {
    guard let address = SessionBus.address else {
      throw .unreachable(
        reason:
          "there is no session bus: DBUS_SESSION_BUS_ADDRESS is not set, and the runtime folder has no socket `bus`"
      )
    }
    let (plainSession, credential) = (plainSession, credential)
    let engine = try SecretServiceEngine(address: address) {
      plainSession ?? folders.map { Self.allowsPlainSession(in: $0, credential) } ?? false
    }
    try engine.connect(within: milliseconds)
    return engine
  }

  private typealias VaultFolders = (vault: String, state: String)

  /// Whether the vault in a folder allows a plain session; one that is locked allows none.
  private static func allowsPlainSession(in folders: VaultFolders, _ credential: VaultCredential?) -> Bool {
    guard Files.exists(folders.vault + "/vault.db"),
      let vault = try? VaultEngine(
        directory: folders.vault, stateDirectory: folders.state, reading: .singleItems)
    else { return false }
    defer { vault.close() }
    if vault.lockState != .open, let credential { try? vault.unlock(with: credential) }
    return allowsPlainSession(vault)
  }

  /// The vault that has to be unlocked to read whether it allows a plain session: a Secret Service is to be opened that offers no
  /// other, and the vault takes a passphrase. nil: there is nothing to ask for.
  package func vaultOfPlainSession(vault: String, state: String) -> VaultEngine? {
    let folder = self.vault ?? vault
    let isOfService =
      choice == .secretService || choice == .automatic && ChosenKeychain.fetch(state: state) != .vault
    guard plainSession == nil, isOfService, !isServed, Files.exists(folder + "/vault.db"),
      let engine = try? VaultEngine(directory: folder, stateDirectory: state, reading: .singleItems),
      engine.needsPassphrase
    else { return nil }
    do throws(StoreError) { _ = try service(within: Self.longPatience) } catch .notPermitted {
      return engine
    } catch {}
    return nil
  }

  /// Whether an unlocked vault allows a plain session.
  package static func allowsPlainSession(_ vault: VaultEngine) -> Bool {
    (try? KeychainStore(engine: vault).sealedConfiguration())?[.plainSession] == .bool(true)
  }

  /// The service with the vault beside it, which is made when the first item is to be sealed.
  private func sealing(_ engine: SecretServiceEngine, _ folders: VaultFolders) -> SealingKeychain {
    SealingKeychain(engine, Seals(vault: folders.vault, state: folders.state))
  }

  private func openVault(
    _ folders: VaultFolders, _ reason: String
  ) throws(KeychainFailure) -> OpenedKeychain {
    if !makesVault, AbsentVault.isAbsent(in: folders.vault) {
      let engine = AbsentVault(
        folder: folders.vault, state: folders.state, retention: Configuration(options: history).retention)
      return OpenedKeychain(engine: engine, explanation: "vault, \(reason); it is made with the first item")
    }
    do throws(StoreError) {
      let engine = try VaultEngine(
        directory: folders.vault, stateDirectory: folders.state, reading: reading,
        retention: Configuration(options: history).retention)
      let credentialFailure = credential.flatMap(engine.failureToUnlock)
      return OpenedKeychain(
        engine: engine, explanation: "vault, \(reason)" + (credentialFailure.map { "; \($0)" } ?? ""))
    } catch {
      throw KeychainFailure(subject: folders.vault, error: error)
    }
  }
}

extension VaultEngine {
  /// Unlocks the vault by a credential, where it is locked; why that failed, for `keyhole status`.
  fileprivate func failureToUnlock(with credential: VaultCredential) -> String? {
    guard lockState != .open else { return nil }
    do throws(StoreError) {
      try unlock(with: credential)
      return nil
    } catch {
      return "its credential does not open it: \(error.message)"
    }
  }
}

extension KeychainConfiguration {
  private static let plain = "+plain-session"
  private static let noted = "+history="

  /// The keychain of the running mount, else of the service without one, else of a mount whose process has died, else as `auto`.
  package static func present(runtime folder: String) -> KeychainConfiguration {
    let mount = MountRegistration.serving(in: folder).last ?? MountRegistration.all(in: folder).last
    return mount?.keychain ?? KeychainConfiguration()
  }

  /// Without `auto`: what was chosen, by the engine's name, and the vault's folder.
  package func settled(on engine: String?, vault: String) -> KeychainConfiguration {
    var settled = self
    settled.vault = self.vault ?? vault
    settled.choice = engine.flatMap(KeychainChoice.init) ?? .none
    return settled
  }

  /// For the note of a mount.
  var word: String {
    let plain = plainSession == true ? Self.plain : ""
    guard !history.isEmpty else { return choice.rawValue + plain }
    let numbers = Self.historyKeys.map { key in history[key].map(ConfigurationKey.text) ?? "" }
    return choice.rawValue + Self.noted + numbers.joined(separator: "/") + plain
  }

  init(word: String) {
    let isPlain = word.hasSuffix(Self.plain)
    plainSession = isPlain ? true : nil
    let choice = isPlain ? String(word.dropLast(Self.plain.count)) : word
    let parts = choice.split(separator: "+", maxSplits: 1)
    self.choice = parts.first.flatMap { KeychainChoice(rawValue: String($0)) } ?? .automatic
    guard parts.count > 1, parts[1].hasPrefix(Self.noted.dropFirst()) else { return }
    let numbers = parts[1].dropFirst(Self.noted.count - 1).split(
      separator: "/", omittingEmptySubsequences: false)
    for (key, number) in zip(Self.historyKeys, numbers) {
      history[key] = try? key.value(reading: [String(number)])
    }
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
  /// That of the mount option `store=`.
  case cluster
  case none
}
