import Home
import Keychains

/// Where things live (`Places` in the contract's section 10).
struct Places {
  let home: String
  /// Foundation's folder of suites.
  let configuration: String
  /// The vault.
  private(set) var vault: String
  /// Times of keys, the vault's anchor and device key.
  let state: String
  /// What lives only while something runs.
  let runtime: String

  /// - Throws: `Failure` where there is no home.
  static func current() throws -> Places {
    guard let folders = UserFolders.current() else {
      throw Failure(nil, "there is no home folder; set HOME")
    }
    return Places(
      home: folders.home, configuration: folders.configuration, vault: folders.data, state: folders.state,
      runtime: folders.runtime)
  }

  /// - Throws: `Failure` where there is no home.
  static func current(_ options: MountOptions) throws -> Places {
    var places = try current()
    if let vault = options.vault { places.vault = vault }
    return places
  }

  /// - Throws: `Failure` with what to do where the keychain can't be opened.
  func open(_ opening: KeychainOpening) throws -> OpenedKeychain {
    do throws(KeychainFailure) {
      return try opening.open(vault: vault, state: state)
    } catch {
      throw Failure(error.subject, error.error)
    }
  }

  var mountPoint: String { home + "/Keyhole" }
}
