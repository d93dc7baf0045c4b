import Model
import Store
import Suites
import Tree
import Vault

/// The stores of the user, opened as the mount options say.
struct Stores {
  let feed = ChangeFeed()
  let settings: SettingsStore
  let keychain: KeychainStore?
  let choice: KeychainChoice

  /// - Throws: `Failure` with what to do where the keychain can't be opened.
  init(_ places: Places, keychain choice: KeychainChoice = .automatic) throws {
    self.choice = choice
    let folder = PropertyListFolder(folder: places.configuration, stateFolder: places.state)
    // What a process that was killed has left behind.
    folder.removeLeftovers()
    settings = SettingsStore(engine: folder, feed: feed)
    keychain = try Self.openKeychain(choice, places).map { [feed] in KeychainStore(engine: $0, feed: feed) }
  }

  private static func openKeychain(
    _ choice: KeychainChoice, _ places: Places
  ) throws -> (any KeychainEngine)? {
    switch choice {
    case .none: return nil
    case .secretService:
      throw Failure(nil, "this version has no Secret Service yet; use `-o keychain=vault`")
    case .automatic, .vault:
      do throws(StoreError) {
        return try VaultEngine(directory: places.vault, stateDirectory: places.state)
      } catch {
        throw Failure(places.vault, error)
      }
    }
  }
}

/// The mount option `keychain=`.
enum KeychainChoice: String, CaseIterable {
  case automatic = "auto"
  case secretService = "secret-service"
  case vault
  case none

  /// For `keyhole status`: which keychain it is, and why.
  var explanation: String {
    switch self {
    case .automatic: "vault, because this version has no Secret Service yet"
    case .secretService: "the Secret Service, as `keychain=secret-service` says"
    case .vault: "vault, as `keychain=vault` says"
    case .none: "none, as `keychain=none` says"
    }
  }
}
