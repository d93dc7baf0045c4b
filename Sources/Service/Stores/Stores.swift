import Control
import ImportExport
package import KeychainSelection
import Model
import Platform
import PromptHelper
import Prompting
package import Store
import Suites
import Vault

/// The stores of the user, opened as the mount options say.
package struct Stores {
  package let feed: ChangeFeed
  package let settings: SettingsStore
  package let keychain: KeychainStore?
  /// Which keychain it is, and why.
  let explanation: String
  /// The configuration that opens the same keychain again, whichever services have started since.
  let keychainOpening: KeychainConfiguration
  /// The choice of `auto`, made now and for the first time.
  let firstChoice: KeychainChoice?
  /// Has the history of settings kept as the suite `keyhole` says now.
  let keepHistory: @Sendable () -> Void
  /// Whether the settings are those of a cluster.
  let hasRemoteSettings: Bool
  /// The folder of the state, and of the vault.
  let folders: (state: String, vault: String)

  /// - Throws: `Failure` with what to do where the keychain can't be opened.
  init(
    _ places: StoragePaths, keychain opening: KeychainConfiguration = KeychainConfiguration(),
    controller: AccessController? = nil, unlocking: UnlockController? = nil,
    loadingSettings loadsSettings: Bool = false, cluster: MountedCluster? = nil
  ) throws {
    let opened = try cluster?.openedKeychain(opening) ?? places.open(opening)
    try self.init(
      places, opened, opening, controller: controller, unlocking: unlocking, loadingSettings: loadsSettings,
      remote: cluster?.suites)
    cluster?.follow(self)
  }

  init(
    _ places: StoragePaths, _ opened: OpenedKeychain, _ opening: KeychainConfiguration,
    controller: AccessController? = nil, unlocking: UnlockController? = nil,
    loadingSettings loadsSettings: Bool = false, onlyKey: SettingKey? = nil,
    remote: (any SuiteEngine)? = nil
  ) throws {
    feed = loadsSettings ? ChangeFeed() : ChangeFeed(notingIn: .ofProcess)
    let folder = PropertyListFolder(
      folder: places.configuration, stateFolder: places.state,
      retention: Configuration(options: opening.history).retention)
    // The remains of a process that was killed.
    folder.removeLeftovers()
    // The configuration has to be read whole.
    let onlyKey = onlyKey.flatMap { $0.suite == SuiteConfiguration.suite ? nil : $0 }
    let single = onlyKey.flatMap { folder.singleKeys?.only($0.key, of: $0.suite) }
    settings = SettingsStore(
      engine: remote ?? single ?? folder, feed: feed, keepsForeignVersions: loadsSettings)
    let settings = settings
    let retention: KeychainStore.Retention = { sealed in
      let suite = SuiteConfiguration(in: settings).values
      return Configuration(options: opening.history, sealed: sealed, suite: suite).retention
    }
    // The values of settings are no secrets of the vault: what lies there has no effect on their history.
    // Those of a cluster can be read when it is unlocked; until then nothing is kept.
    let history = remote == nil ? folder : remote?.history
    keepHistory = { history?.keep(retention([:])) }
    if remote == nil { keepHistory() }
    // A mount reads both at its beginning; each of many thousands takes its time.
    if loadsSettings { Background.run { _ = try? settings.suiteNames() } }
    hasRemoteSettings = remote != nil
    explanation = opened.explanation
    firstChoice = opened.firstChoice
    keychainOpening = opening.settled(on: opened.engine?.name, vault: places.vault)
    folders = (places.state, keychainOpening.vault ?? places.vault)
    keychain = opened.engine.map { [feed] in
      KeychainStore(
        engine: $0, feed: feed, controller: controller, unlocking: unlocking, retention: retention)
    }
    // An import was made with the settings that commands use: in those of another mount nothing of it would be found.
    if places.settingsMount == nil, ImportRecovery.isNeeded(state: places.state) { recoverImport(places) }
  }

  /// Takes back what an import that was killed has left.
  private func recoverImport(_ places: StoragePaths) {
    let outcome = ImportRecovery.run(state: places.state, settings: settings) {
      if let keychain { return keychain }
      return try places.openUnlocked(.present(runtime: places.runtime)).engine.map {
        KeychainStore(engine: $0)
      }
    }
    guard let message = outcome.message(journal: ImportRecovery.journal(state: places.state)) else { return }
    StandardError.write("keyhole: \(message.escapedForTerminal)\n")
  }

  /// The stores that a path may lead to: settings need no keychain. Where a person has to be asked, a mount does it
  /// if there is one, else this command does on its terminal.
  ///
  /// A locked vault that no mount serves is unlocked for this command alone, by `unlocking`. With `onlyKey` the other keys of
  /// its suite may be missing.
  package init(
    for path: TreePath, _ places: StoragePaths, _ choice: KeychainChoice? = nil,
    unlocking: UnlockController? = nil, onlyKey: SettingKey? = nil
  ) throws {
    var none = KeychainConfiguration(choice: .none)
    var keychain = KeychainConfiguration.present(runtime: places.runtime)
    if let choice { keychain.choice = choice }
    keychain.reading = .singleItems
    none.history = keychain.history
    keychain.unlocksWithoutMount = unlocking != nil
    try self.init(
      places, path.needsKeychain ? places.openUnlocked(keychain) : places.open(none), none,
      controller: Self.relaying(places) { KeychainConfiguration.mounted(runtime: places.runtime) },
      unlocking: unlocking, onlyKey: onlyKey, remote: places.mountedSuites)
  }

  /// With a keychain that has no items, in the place of one that can't be opened.
  init(withoutItemsIn places: StoragePaths) throws {
    try self.init(
      places, OpenedKeychain(engine: NoItems(), explanation: ""), KeychainConfiguration(choice: .none),
      remote: places.mountedSuites)
  }

  /// The keychain of the running mount, else as `auto`, opened by this process.
  init(aloneIn places: StoragePaths) throws {
    try self.init(places, keychain: .present(runtime: places.runtime), controller: Self.relaying(places))
  }

  private static func relaying(
    _ places: StoragePaths, open: @escaping @Sendable () -> (any KeychainEngine)? = { nil }
  ) -> AccessController {
    let record = AccessLog(stateFolder: places.state)
    let mount = MountAuthenticator(
      runtimeFolder: places.runtime, fallback: HelperAuthenticator(vault: places.vault, state: places.state),
      record: record, open: open
    )
    return AccessController(mount, .relaying, record: record)
  }

  /// From now on `auto` keeps what it has chosen: something was stored in it, or it is mounted.
  package func settleKeychain() {
    if let firstChoice { ChosenKeychain.note(firstChoice, state: folders.state) }
  }

  /// Items of the other keychain, which this one does not show; nil: there are none, or no keychain is shown.
  package func hiddenItems() -> HiddenItems? {
    HiddenItems.beside(keychain?.engine.name, vault: folders.vault, state: folders.state)
  }
}

extension ImportRecovery.Outcome {
  /// For people; nil: there was nothing to do. `journal`: the path of the import's journal.
  fileprivate func message(journal: String) -> String? {
    switch self {
    case .nothing, .finished: nil
    case .takenBack(let replaced) where replaced.isEmpty:
      "an import that was cut short was taken back; run it again"
    case .takenBack(let replaced):
      "an import that was cut short was taken back; some of these items may hold what it brought: "
        + replaced.joined(separator: ", ")
    case .waiting(let error):
      "an import that was cut short can't be taken back yet: \(error.message). The next command tries it again; to keep what the import has changed instead, move \(journal) away"
    }
  }
}
