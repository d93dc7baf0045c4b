import Backup
package import KeychainSelection
import Model
import Platform
import Prompting

/// Where things live (SPECIFICATION.md, section 10: *StoragePaths*).
package struct StoragePaths: Sendable {
  package let home: String
  /// Foundation's folder of suites.
  package let configuration: String
  /// The folder of the user's own vault.
  package let data: String
  /// The vault.
  package private(set) var vault: String
  /// Times of keys, the vault's anchor and device key.
  package let state: String
  /// The folder of files that exist only while a process runs.
  package let runtime: String
  /// The mount whose settings are meant; nil: those that commands use.
  package private(set) var settingsMount: String?

  /// `vault`: the folder of the user's own.
  init(home: String, configuration: String, vault: String, state: String, runtime: String) {
    (self.home, self.configuration, self.vault, self.state) = (home, configuration, vault, state)
    (data, self.runtime) = (vault, runtime)
  }

  /// - Throws: `Failure` where there is no home.
  package static func current() throws -> StoragePaths {
    guard let folders = UserFolders.current() else {
      throw Failure(nil, "there is no home folder; set HOME")
    }
    if RestoreRecovery.isNeeded(state: folders.state) { recoverRestore(folders.state) }
    return StoragePaths(
      home: folders.home, configuration: folders.configuration, vault: folders.data, state: folders.state,
      runtime: folders.runtime)
  }

  /// Finishes or takes back a restore that was interrupted, before anything is opened.
  private static func recoverRestore(_ state: String) {
    guard let message = RestoreRecovery.run(state: state).message else { return }
    StandardError.write("keyhole: \(message.escapedForTerminal)\n")
  }

  /// - Throws: `Failure` where there is no home.
  package static func current(_ options: MountOptions) throws -> StoragePaths {
    try current().with(options.keychain)
  }

  /// The places of the running mount: its vault may be another one. - Throws: `Failure` where there is no home.
  package static func ofMount() throws -> StoragePaths {
    let places = try current()
    return places.with(.present(runtime: places.runtime))
  }

  /// With the settings that a mount shows; nil: those that commands use.
  package func with(settingsOf mount: String?) -> StoragePaths {
    var places = self
    places.settingsMount = mount
    return places
  }

  package func with(vault: String) -> StoragePaths {
    var places = self
    places.vault = vault
    return places
  }

  private func with(_ keychain: KeychainConfiguration) -> StoragePaths {
    var places = self
    if let vault = keychain.vault { places.vault = vault }
    return places
  }

  /// - Throws: `Failure` with what to do where the keychain can't be opened.
  package func open(_ opening: KeychainConfiguration) throws -> OpenedKeychain {
    try attempt { () throws(KeychainFailure) in try opening.open(vault: vault, state: state) }
  }

  /// The same, through the mount that has unlocked it where it takes a passphrase.
  package func openUnlocked(_ opening: KeychainConfiguration) throws -> OpenedKeychain {
    try attempt { () throws(KeychainFailure) in
      try opening.open(vault: vault, state: state, runtime: runtime)
    }
  }

  private func attempt(_ open: () throws(KeychainFailure) -> OpenedKeychain) throws -> OpenedKeychain {
    do throws(KeychainFailure) { return try open() } catch { throw Failure(error.subject, error.error) }
  }

  /// Where `keyhole mount` mounts without an argument.
  package var mountPoint: String { home + "/Keyhole" }
}

extension RestoreRecovery.Outcome {
  /// For people; nil: there was nothing to do.
  fileprivate var message: String? {
    switch self {
    case .nothing: nil
    case .takenBack: "a restore that was interrupted was taken back; nothing was changed"
    case .finished(let paths) where paths.isEmpty: "a restore that was interrupted is finished now"
    case .finished(let paths):
      "a restore that was interrupted is finished now; set aside: " + paths.joined(separator: ", ")
    case .waiting(let error):
      "a restore that was interrupted can't be finished yet: "
        + "\(error.subject.map { "\($0): " } ?? "")\(error.reason)"
    }
  }
}
