import KeychainSelection
import Model
import Prompting
import Service

/// Items of a Secret Service, which are in no backup.
struct ServiceItems {
  /// Whether it is the user's keychain; nil: none was chosen yet.
  private let isChosen: Bool?
  private let count: Int?

  init(_ places: StoragePaths) {
    let opening = KeychainConfiguration.present(runtime: places.runtime)
    let choice = opening.choice == .automatic ? ChosenKeychain.fetch(state: places.state) : opening.choice
    isChosen = choice.map { $0 == .secretService }
    guard isChosen ?? true else {
      count = nil
      return
    }
    count =
      HiddenItems.beside(
        KeychainChoice.vault.rawValue, vault: places.vault, state: places.state, patience: 1_000)?.count
  }

  /// - Throws: `Failure` where a backup would not hold the user's secrets.
  func requireNone() throws {
    guard isChosen == true else { return }
    throw Failure(
      "Secret Service",
      "it is the keychain, and \(items) not in a backup: `keyhole export keychain` writes them. Nothing was "
        + "written; --without-secret-service backs up the settings and the vault")
  }

  func note() {
    guard isChosen == true || count != nil else { return }
    StandardError.write(
      "keyhole: the Secret Service: \(items) not in the backup; `keyhole export keychain` writes them\n")
  }

  private var items: String {
    switch count {
    case nil: "its items are"
    case 1?: "its 1 item is"
    case let count?: "its \(count) items are"
    }
  }
}
