import Doorbell
import Home
import Live
import Memory
import Model
import Store
import Vault
import Watch

/// Where secrets are kept.
///
/// Wrappers use `.user`, or under a test runner a keychain in memory that only this process has, so that tests
/// touch nobody's secrets. `KEYHOLE_STORE=user` or `=memory` in the environment says it for a process,
/// `KeychainLocation.$current.withValue(…)` for what is made inside.
public struct KeychainLocation: Sendable {
  package let live: LiveKeychain

  /// Where wrappers that are made now keep their secrets; nil: where the process does.
  @TaskLocal public static var current: KeychainLocation?

  /// The user's own vault, in `$XDG_DATA_HOME/keyhole`, opened when it is first used.
  public static let user = KeychainLocation(
    live: LiveKeychain(open: { () throws(StoreError) in
      guard let folders = UserFolders.current() else {
        throw .unreachable(reason: "there is no home folder; set HOME")
      }
      let record = AccessLog(stateFolder: folders.state)
      let gatekeeper = Gatekeeper(
        MountAuthenticator(runtimeFolder: folders.runtime, record: record), .relaying, record: record)
      return try vault(data: folders.data, state: folders.state, gatekeeper)
    }))

  /// A new keychain in memory, which begins empty and is gone with its last user.
  public static func memory() -> KeychainLocation {
    KeychainLocation(live: LiveKeychain(open: { Opened(store: KeychainStore(engine: MemoryKeychain())) }))
  }

  /// A vault in a folder of one's own, as other processes that name the same folder see it.
  public static func folder(_ path: String) -> KeychainLocation {
    KeychainLocation(
      live: LiveKeychain(open: { () throws(StoreError) in
        try vault(data: path, state: path + "/state")
      }))
  }

  private static let ofProcess: KeychainLocation = TestRunner.usesMemory ? .memory() : .user

  package static var chosen: KeychainLocation { current ?? ofProcess }

  private static func vault(
    data: String, state: String, _ gatekeeper: Gatekeeper? = nil
  ) throws(StoreError) -> LiveKeychain.Opened {
    let engine = try VaultEngine(directory: data, stateDirectory: state)
    return LiveKeychain.Opened(store: KeychainStore(engine: engine, gatekeeper: gatekeeper)) { changed in
      FolderWatch(data) { _ in changed() }
    }
  }
}

extension KeychainLocation {
  private typealias Opened = LiveKeychain.Opened
}
