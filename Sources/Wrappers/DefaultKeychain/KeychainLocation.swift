import Control
import InMemory
import KeychainSelection
import Model
import Notifier
import Platform
import PromptHelper
import Store
import Suites
import Vault
import WrapperCore

/// Where secrets are kept.
///
/// Wrappers use `.user`, or under a test runner a keychain in memory that only this process has, so that tests
/// don't use the user's secrets. `KEYHOLE_STORE=user` or `=memory` in the environment sets it for a process,
/// `KeychainLocation.$current.withValue(…)` for the wrappers that are made inside.
public struct KeychainLocation: Sendable {
  package let live: LiveKeychain

  /// The location for wrappers that are made in this task; nil: that of the process.
  @TaskLocal public static var current: KeychainLocation?

  /// The user's own keychain, opened when it is first used: the running mount's, else the Secret Service where
  /// one answers on the session bus, else the vault in `$XDG_DATA_HOME/keyhole`. `keyhole get` has the same.
  ///
  /// Where it is locked and no mount serves it, the installed command (`/usr/bin/keyhole` or `/usr/local/bin/keyhole`, root's) asks
  /// for the passphrase, and the vault is open for this process until it ends. Without that command it stays locked.
  public static let user: KeychainLocation = {
    guard let folders = UserFolders.current() else {
      return KeychainLocation(
        live: LiveKeychain(open: { () throws(StoreError) in
          throw .unreachable(reason: "there is no home folder; set HOME")
        }))
    }
    let record = AccessLog(stateFolder: folders.state)
    let controller = AccessController(
      MountAuthenticator(runtimeFolder: folders.runtime, record: record) {
        KeychainConfiguration.mounted(runtime: folders.runtime)
      }, .relaying, record: record)
    let unlocking = unlockController(vault: folders.data, state: folders.state)
    let alone = LiveKeychain.Alone(
      isServed: { KeychainConfiguration.mounted(runtime: folders.runtime) != nil },
      open: { () throws(StoreError) in try own(folders, controller, unlocking) })
    return KeychainLocation(
      live: LiveKeychain(
        alone: alone, open: { () throws(StoreError) in try present(folders, controller) }))
  }()

  /// A new, empty keychain in memory. It exists as long as a wrapper or a copy of this value uses it.
  public static func memory() -> KeychainLocation {
    // No person can be asked there: an item with flags can't be opened, as with a finger that is not enrolled.
    let keychain = LiveKeychain(enrolledFingers: { "none" }) {
      Opened(store: KeychainStore(engine: MemoryKeychain()))
    }
    return KeychainLocation(live: keychain)
  }

  /// The vault in a folder, which processes that name the same folder share.
  public static func folder(_ path: String) -> KeychainLocation {
    KeychainLocation(
      live: LiveKeychain(open: { () throws(StoreError) in
        try vault(data: path, state: path + "/state")
      }))
  }

  private static let ofProcess: KeychainLocation = TestRunner.usesMemory ? .memory() : .user

  package static var chosen: KeychainLocation { current ?? ofProcess }

  private static func present(
    _ folders: UserFolders, _ controller: AccessController
  ) throws(StoreError) -> LiveKeychain.Opened {
    let opening = KeychainConfiguration.present(runtime: folders.runtime)
    guard let engine = try engine(opening, folders) else { throw .noKeychain }
    return opened(
      engine, data: opening.vault ?? folders.data, controller, retention: retention(opening, folders))
  }

  /// As this process opens it by itself; nil: there is no command that asks, or a mount has come to serve it.
  private static func own(
    _ folders: UserFolders, _ controller: AccessController, _ unlocking: UnlockController?
  ) throws(StoreError) -> LiveKeychain.Opened? {
    guard let unlocking else { return nil }
    var opening = KeychainConfiguration.present(runtime: folders.runtime)
    opening.unlocksWithoutMount = true
    guard let engine = try engine(opening, folders), engine.remote?.decidesAccess != true else { return nil }
    return opened(
      engine, data: opening.vault ?? folders.data, controller, unlocking,
      retention: retention(opening, folders))
  }

  /// Asks for the passphrase of a vault by the installed command; nil: there is none.
  private static func unlockController(vault: String, state: String) -> UnlockController? {
    InstalledCommand.path.map { program in
      UnlockController(HelperAuthenticator(program: program, vault: vault, state: state))
    }
  }

  /// As the options of the mount, the vault and the suite `keyhole` say.
  private static func retention(
    _ opening: KeychainConfiguration, _ folders: UserFolders
  ) -> KeychainStore.Retention {
    let settings = SettingsStore(
      engine: PropertyListFolder(folder: folders.configuration, stateFolder: folders.state))
    return { [options = opening.history] sealed in
      let suite = SuiteConfiguration(in: settings).values
      return Configuration(options: options, sealed: sealed, suite: suite).retention
    }
  }

  /// nil: the running mount has none.
  private static func engine(
    _ opening: KeychainConfiguration, _ folders: UserFolders
  ) throws(StoreError) -> (any KeychainEngine)? {
    do throws(KeychainFailure) {
      return try opening.open(
        vault: folders.data, state: folders.state, runtime: folders.runtime
      ).engine
    } catch {
      throw error.error
    }
  }

  private static func vault(data: String, state: String) throws(StoreError) -> LiveKeychain.Opened {
    opened(
      try VaultEngine(directory: data, stateDirectory: state, retention: .standard), data: data, nil,
      unlockController(vault: data, state: state))
  }

  private static func opened(
    _ engine: any KeychainEngine, data: String, _ controller: AccessController?,
    _ unlocking: UnlockController? = nil, retention: KeychainStore.Retention? = nil
  ) -> LiveKeychain.Opened {
    let store = KeychainStore(
      engine: engine, controller: controller, unlocking: unlocking, retention: retention)
    return LiveKeychain.Opened(store: store) { changed in
      guard let remote = engine.remote else {
        return FolderWatch(data, .commits) { _ in changed() }
      }
      return NewsWatch(remote.news, changed)
    }
  }
}

extension KeychainLocation {
  private typealias Opened = LiveKeychain.Opened
}

extension StoreError {
  fileprivate static let noKeychain = StoreError.unreachable(
    reason: "the running mount has no keychain, as `keychain=none` says")
}
